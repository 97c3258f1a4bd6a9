"""For the benchmarks of the tracer: how a command runs under each tracer, what each run took, and how quiet the machine was."""
import dataclasses
import glob
import json
import os
import random
import re
import resource
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROCESSORS = len(os.sched_getaffinity(0))
LTTNG_WRAPPER = "liblttng-ust-libc-wrapper.so.1"
LOAD_MAX, STEAL_MAX, OTHERS_MAX, APART_MAX = 0.5, 0.02, 0.1, 200

# Our tracer: for each name in the tables, the variables that it gets besides the file of the trace.
OURS = {".cmt": {}, ".cmt time=100us": {"CMTTRACE_TIME": "100us"}, ".cmt times": {"CMTTRACE_TIME": "1"},
        ".cmt stamps=all": {"CMTTRACE_STAMPS": "all"}, ".cmt stamps=sparse": {"CMTTRACE_STAMPS": "sparse"},
        ".cmt stacks": {"CMTTRACE_STACKS": "1"},
        ".cmt time=1ms": {"CMTTRACE_TIME": "1ms"}, ".cmt stacks time=1ms": {"CMTTRACE_STACKS": "1", "CMTTRACE_TIME": "1ms"},
        ".cmt touched=off": {"CMTTRACE_TOUCHED": "off"}, "text": {}, "whole": {"CMTTRACE_WAIT": "1"}}
FLOORS = {"bare ring": "floor.so", "bare ring clock": "floor_clock.so"}
HEAPTRACK = {"heaptrack": [], "heaptrack -r": ["-r"]}  # with its interpreter beside the program, and without
NAMES = ["untraced", "forward", *FLOORS, *OURS, *HEAPTRACK, "lttng"]


def compile_c(work, program, source, *flags):
    subprocess.run(["cc", "-O2", "-fno-builtin", "-pthread", "-D_GNU_SOURCE", *flags, "-o", f"{work}/{program}",
                    f"{HERE}/{source}"], check=True)


@dataclasses.dataclass
class Run:
    """What one run took, in s. `events`: what the tracer's other process received; of heaptrack what its log has, in the first run; or None. `helper`: processor time of the tracer's other processes; `helper_at_end`: of it, what had passed
    when the program ended, or None. `whole`: from the program's end to the end of its trace. `steal`, `others`: processors that
    the hypervisor took away, and that programs beside this run kept busy."""
    output: str
    wall: float
    events: int
    helper: float
    helper_at_end: float
    whole: float
    steal: float
    others: float
    lost: int = 0  # events, of our tracer


class Machine:
    """What all programs took of the processors since it was made."""

    def __init__(self):
        self.begin, self.before = time.monotonic(), self.read()

    @staticmethod
    def read():
        with open("/proc/stat", encoding="ascii") as file:
            user, nice, system, _, _, interrupts, soft, steal = map(int, file.readline().split()[1:9])
        return user + nice + system + interrupts + soft, steal

    def shares(self, ours):
        """(stolen, busy with other programs), in processors; `ours`: processor time of the run in s."""
        elapsed, tick = time.monotonic() - self.begin, os.sysconf("SC_CLK_TCK")
        busy, steal = ((after - before) / tick for after, before in zip(self.read(), self.before))
        return steal / elapsed, max(0, busy - ours) / elapsed


def own_processor_time():
    """Of this process and of its children that have ended, in s."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def children_processor_time():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Drain:
    """The process that reads what the bare ring's library writes. It runs until it is told to end."""

    def __init__(self, work):
        self.process = subprocess.Popen([work + "/floor_drain"], stdout=subprocess.PIPE)
        self.rings = self.process.stdout.readline().decode().strip()

    def end(self):
        """(events that it read, its processor time in s)"""
        self.process.send_signal(signal.SIGTERM)
        events, cpu_ns = map(int, self.process.communicate()[0].split())
        return events, cpu_ns / 1e9


class Collectors:
    """The collectors of one run of our tracer, by the file to which each of them appends a line when it begins and ends."""

    def __init__(self, status):
        self.status = status

    def processor_time(self):
        """So far, of those that run, in s; None where there is none."""
        ticks = []
        for folder in glob.glob("/proc/[0-9]*"):
            try:
                with open(folder + "/environ", "rb") as file:
                    if b"CMTTRACE_STATUS=" + self.status.encode() + b"\0" not in file.read():
                        continue
                with open(folder + "/stat", encoding="utf-8", errors="replace") as file:
                    name, fields = file.read().split("(", 1)[1].rsplit(")", 1)
            except OSError:
                continue
            if name == "cmttrace-collec":
                ticks.append(sum(map(int, fields.split()[11:13])))
        return sum(ticks) / os.sysconf("SC_CLK_TCK") if ticks else None

    def wait(self, seconds=float("inf")):
        """Waits until every trace that began is whole. The fields of the line at the end of each."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            lines = []
            if os.path.exists(self.status):
                with open(self.status, encoding="utf-8") as file:
                    lines = file.read().splitlines()
            begun = [line for line in lines if " begun=1 " in line]
            ended = [line for line in lines if " cpu_ns=" in line]  # others say how far a collector is
            if lines and len(ended) == len(begun):
                os.unlink(self.status)
                return [dict(re.findall(r"(\w+)=(\S+)", line)) for line in ended]
            time.sleep(0.01)
        raise TimeoutError


class Tracers:
    """How a command is run under each tracer, in a folder that is emptied after each run. `builds`: folders with the built tools;
    tracers of the second are named ".cmt (2)"."""

    def __init__(self, builds, work):
        self.work = work
        self.out = os.path.join(work, "out")
        os.mkdir(self.out)
        self.counted = set()  # of heaptrack, whose log was counted
        self.ours = {}  # name: (library, name without the build's number)
        for number, build in enumerate(builds, 1):
            for name in OURS:
                self.ours[name if number == 1 else f"{name} ({number})"] = (build + "/preload/libcmttrace.so", name)
        for floor, flags in (("floor", []), ("floor_clock", ["-DFLOOR_CLOCK"])):
            compile_c(work, floor + ".so", "programs/floor.c", "-fPIC", "-shared", "-ftls-model=initial-exec", *flags)
        compile_c(work, "floor_drain", "programs/floor_drain.c")
        compile_c(work, "forward.so", "programs/forward.c", "-fPIC", "-shared")
        self.unsupported = [name for name in self.ours if not self.is_supported(name)]
        self.sessiond = None
        if self.has_lttng():  # ends at once where another is at work, which does as well
            self.sessiond = subprocess.Popen(["lttng-sessiond"], env=dict(os.environ, LTTNG_HOME=work),
                                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(2)

    def close(self):
        if self.sessiond:
            self.sessiond.terminate()
            self.sessiond.wait()

    def names(self, wanted):
        """Of the wanted tracers those that are there, and those of all builds. Says which builds do not support one."""
        there = {**dict.fromkeys(HEAPTRACK, shutil.which("heaptrack")), "lttng": self.has_lttng()}
        wanted = [name for name in wanted if there.get(name, True)]
        ours = [name for name, (_, plain) in self.ours.items() if plain in wanted]
        for name in sorted(set(ours) & set(self.unsupported)):
            print(f"{name}: not supported by this build")
        numbered = [name for name in ours if name not in wanted]
        return [name for name in wanted + numbered if name not in self.unsupported]

    def is_supported(self, name):
        """Whether the library records at all with these settings."""
        subprocess.run(["true"], env=dict(self.environment(name, None), CMTTRACE_WAIT="1"), check=False, stderr=subprocess.DEVNULL)
        with open(self.work + "/status", encoding="utf-8") as file:
            is_supported = " refused=1 " not in file.read()
        if is_supported:
            Collectors(self.work + "/status").wait()
        else:
            os.unlink(self.work + "/status")
        self.empty()
        return is_supported

    @staticmethod
    def has_lttng():
        found = subprocess.run(["/sbin/ldconfig", "-p"], stdout=subprocess.PIPE, check=True).stdout.decode()
        return shutil.which("lttng") and LTTNG_WRAPPER in found

    def environment(self, tracer, drain):
        environment = dict(os.environ, PYTHONMALLOC="malloc")
        if tracer in self.ours:
            library, plain = self.ours[tracer]
            environment.update(OURS[plain], LD_PRELOAD=library, CMTTRACE_STATUS=self.work + "/status",
                               CMTTRACE_OUT=self.out + "/t.%p" + (".trace" if plain == "text" else ".cmt"))
        if tracer in FLOORS:
            environment.update(LD_PRELOAD=f"{self.work}/{FLOORS[tracer]}", FLOOR_RINGS=drain.rings)
        if tracer == "forward":
            environment["LD_PRELOAD"] = self.work + "/forward.so"
        if tracer == "lttng":
            environment.update(LD_PRELOAD=LTTNG_WRAPPER, LTTNG_HOME=self.work)
        return environment

    def run(self, tracer, command, program_cpu=lambda output: 0):
        """`program_cpu`: the processor time in s of the program itself, by its output; what else was taken is the helper's."""
        drain = Drain(self.work) if tracer in FLOORS else None
        collectors = Collectors(self.work + "/status") if tracer in self.ours else None
        if tracer == "lttng":
            self.lttng("create", "--output=" + self.out + "/l", "t")
            self.lttng("enable-event", "--userspace", "lttng_ust_libc:*")
            self.lttng("start")
        words = ["heaptrack", *HEAPTRACK[tracer], "-o", self.out + "/h", *command] if tracer in HEAPTRACK else command
        machine, before, children = Machine(), own_processor_time(), children_processor_time()
        begin = time.monotonic()
        done = subprocess.run(words, env=self.environment(tracer, drain), cwd=self.work, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        end = time.monotonic()
        at_end = collectors.processor_time() if collectors else None
        if done.returncode != 0:
            sys.exit(f"{tracer}: {command[0]}: exit {done.returncode}")
        output, events, helper, whole, lost = done.stdout.decode(errors="replace"), None, 0, 0, 0
        if tracer in HEAPTRACK:
            if tracer not in self.counted:  # it takes as long as a run
                self.counted.add(tracer)
                events = sum(heaptrack_events(log) for log in glob.glob(self.out + "/h*"))
            helper = children_processor_time() - children - program_cpu(output)
        if tracer == "lttng":
            self.lttng("destroy", "t")
        ours = 0
        if drain:
            events, helper = drain.end()
            at_end = helper
        if collectors:
            lines = collectors.wait()
            events = sum(int(line["events"]) for line in lines)
            lost = sum(int(line["lost"]) for line in lines)
            ours = helper = sum(int(line["cpu_ns"]) for line in lines) / 1e9
            whole = max(int(line["start_ns"]) + int(line["time_ns"]) for line in lines) / 1e9 - end
            if all("cpu_ns_at_end" in line for line in lines):
                at_end = sum(int(line["cpu_ns_at_end"]) for line in lines) / 1e9
        steal, others = machine.shares(ours + own_processor_time() - before)
        self.empty()
        return Run(output, end - begin, events, helper, at_end, whole, steal, others, lost)

    def empty(self):
        shutil.rmtree(self.out)
        os.mkdir(self.out)

    def lttng(self, *words):
        subprocess.run(["lttng", "--no-sessiond", *words], env=dict(os.environ, LTTNG_HOME=self.work), check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def compiler_of(command, folder):
    """The command of cc1plus that g++ starts, as one process: heaptrack does not follow g++ into it. None without g++."""
    if not shutil.which(command[0]):
        return command
    told = subprocess.run([*command, "-###"], cwd=folder, capture_output=True, text=True, check=True).stderr
    return next(shlex.split(line) for line in told.splitlines() if line.startswith(" ") and "cc1plus" in line)


def real_programs(work):
    """Six that allocate for a living, and two that have large blocks; each of some tenths of a second."""
    with open(work + "/a.cpp", "w", encoding="ascii") as file:
        file.write('#include <map>\n#include <regex>\n#include <string>\nstd::map<std::string, std::regex> m;\n'
                   'bool f(const std::string& s) { return std::regex_search(s, m[s]); }\n')
    rows = [{"id": i, "name": f"n{i}", "tags": [str(i % 7)] * 4, "at": {"x": i * 1.5}} for i in range(40000)]
    with open(work + "/a.json", "w", encoding="ascii") as file:
        json.dump(rows, file)
    numbers = random.Random(1)
    with open(work + "/numbers", "w", encoding="ascii") as file:
        file.writelines(f"{numbers.random()}\n" for _ in range(300000))
    repository = work + "/repository"
    script = ('git init -q . && for i in $(seq 300); do seq $i $((i + 40)) >f$((i % 37)); git add .; '
              'git -c user.name=a -c user.email=a -c gc.auto=0 commit -qm $i; done')
    os.mkdir(repository)
    subprocess.run(["bash", "-c", script], cwd=repository, check=True, stdout=subprocess.DEVNULL)
    return {
        "sqlite3": ["sqlite3", ":memory:", "with recursive n(i) as (select 1 union all select i + 1 from n where "
                    "i < 300000) select count(distinct i * 7 % 1000 || 'x') from n"],
        "jq": ["jq", "[.[] | select(.id % 3 == 0) | .tags + [.name]] | length", "a.json"],
        "git": ["git", "-C", "repository", "log", "--stat", "-p"],
        "perl": ["perl", "-e", 'my %h; $h{$_} = "x" x ($_ % 99) for 1..600000; print scalar(%h)'],
        "cc1plus": compiler_of(["g++", "-O2", "-S", "a.cpp", "-o", "/dev/null"], work),
        "python3": ["/usr/bin/python3", "-c", "import json\nfor i in range(20): json.loads(json.dumps([{str(k): [k] * 5} "
                    "for k in range(5000)]))"],
        "sort": ["sort", "numbers", "-o", "/dev/null"],
        "xz": ["xz", "-0", "--threads=1", "--stdout", "numbers"],
    }


def rotated(names, round_number):
    shift = round_number % len(names)
    return names[shift:] + names[:shift]


def heaptrack_events(log, lines="[+-]"):
    """The allocations and frees that a log of heaptrack has, raw or interpreted: lines that begin with + and -."""
    counted = subprocess.run(["bash", "-c", '{ zstd -dcq "$0" || gzip -dcq "$0"; } 2>/dev/null | grep -ac "^$1"', log, lines],
                             stdout=subprocess.PIPE, check=False).stdout
    return int(counted)


def heaptrack_allocations(log):
    return heaptrack_events(log, "+")


def machine():
    """One line: the processor's model, how many this process may use, kernel and load."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        text = file.read()
    fields = {name: re.search(rf"^{name}\s*: (.*)$", text, re.MULTILINE) for name in ("model name", "cpu family", "model")}
    name, family, model = (found[1] if found else "?" for found in fields.values())
    return (f"{name} (family {family}, model {model}), {PROCESSORS} processors, Linux {os.uname().release}, "
            f"load {os.getloadavg()[0]:.1f}, {time.strftime('%Y-%m-%d')}")


def spread(values, form="{:.1f}"):
    """The median, and the quartiles."""
    middle = form.format(statistics.median(values))
    if len(values) < 2:
        return middle
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle} [{form.format(low)} to {form.format(high)}]"


def table(head, rows):
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        print("  ".join(str(cell).ljust(w) if i == 0 else str(cell).rjust(w)
                        for i, (cell, w) in enumerate(zip(row, widths))).rstrip(), flush=True)
    print()


def warn_of_load():
    load = os.getloadavg()[0]
    print(f"load average before: {load:.2f}, processors: {PROCESSORS}", flush=True)
    if load > LOAD_MAX:
        print(f"warning: the machine is not quiet: load average {load:.2f} before (above {LOAD_MAX})")


def warn_of_noise(runs, apart=()):
    """Says by how much other programs, the hypervisor and far processors disturbed some runs."""
    steal, others = (statistics.median([getattr(run, what) for run in runs]) for what in ("steal", "others"))
    if steal > STEAL_MAX:
        print(f"warning: the machine is not quiet: {steal:.2f} processors stolen by the hypervisor (median; above {STEAL_MAX})")
    if others > OTHERS_MAX:
        print(f"warning: the machine is not quiet: {others:.2f} processors busy with other programs (median; above {OTHERS_MAX})")
    if apart and statistics.median(apart) > APART_MAX:
        print(f"warning: the processors share no cache: a line there and back takes {statistics.median(apart):.0f} ns "
              f"(median; above {APART_MAX})")
