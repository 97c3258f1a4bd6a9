#!/usr/bin/env python3
"""gate.py: records a command with cmttrace, and compares the allocations of its benchmarks or tests with a baseline.

gate.py --out=DIR [--base=DIR] [--allow=LIST] [--runs=N] [--summary=FILE] [--] COMMAND [ARGUMENT]...

Writes the recordings to DIR, which is the --base of a later gate. The phases of the trace are compared: cmt_benchmark.h and
cmt_pytest.py put a mark into it for each benchmark and test. A trace without marks is compared as a whole.

Counts of allocations have no noise, but some programs do not do the same twice. So each side is recorded N times, and what
differs within a side is reported and not judged. If something is worse, the command is recorded 3 more times, to be sure.

Exit status: 0 nothing is worse, or there is no baseline; 1 could not; 2 wrong use; 3 worse.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CONFIRMING_RUNS = 3
LINES_MAX = 50
SYSTEM = ("/usr/", "/lib", "/opt/")


class WrongUse(Exception):
    """An option that a tool refuses."""


class CannotJudge(Exception):
    pass


def environment():
    """What makes a program do the same in each run: seeds of hashes, and for Python one allocator for all objects."""
    variables = dict(os.environ, PYTHONHASHSEED="0")
    variables.setdefault("PYTHONMALLOC", "malloc")
    variables.pop("PYTHONDONTWRITEBYTECODE", None)  # the first run compiles modules, the recorded ones load them
    for name, value, separator in (("PYTHONPATH", HERE, ":"), ("PYTEST_PLUGINS", "cmt_pytest", ",")):
        variables[name] = separator.join(filter(None, [value, variables.get(name)]))
    return variables


def run(command):
    try:
        status = subprocess.call(command, env=environment())
    except OSError as error:
        raise CannotJudge(f"{command[0]}: {error.strerror}")
    if status != 0:
        raise CannotJudge(f"{' '.join(command)}: exit status {status}")


def recordings(folder):
    return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".cmt"))


def record(command, path, stacks=False):
    cost = ["--touched=off"] if stacks else ["--calls"]
    run(["cmttrace", "--follow=no", *cost, "-o", path, "--", *command])
    return path


def output_of(command, good=(0,)):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in good:
        raise CannotJudge(done.stderr.strip())
    return done.stdout


class Figure:
    """A figure of a phase in all recordings of both sides."""

    def __init__(self, phase, figure, allowed):
        self.phase, self.figure, self.allowed = phase, figure, 1 + allowed
        self.base, self.head = [], []

    def is_stable(self, runs):
        sides = ((self.base, runs[0]), (self.head, runs[1]))
        return all(len(side) == count and max(side) <= min(side) * self.allowed for side, count in sides)

    def is_worse(self):
        return min(self.head) > max(self.base) * self.allowed

    def line(self, functions=""):
        before, after = max(self.base), min(self.head)
        unit = self.figure if self.figure in ("allocations", "bytes") else "bytes, " + self.figure
        return f"`{code(self.phase)}`: {before:,} → {after:,} {unit} ({after - before:+,}){functions}"


class Comparison:
    def __init__(self, base, allow):
        self.first, self.allow = base[0], allow
        self.figures, self.runs, self.gone, self.new = {}, [0, 0], set(), set()
        try:
            self.judge(self.first, "base", ["--by=phase"])
            self.by = ["--by=phase"]
        except CannotJudge as error:
            if "has no marks" not in str(error):
                raise
            self.by = []
            self.judge(self.first, "base")
        for path in base[1:]:
            self.judge(path, "base")

    def judge(self, path, side, by=None):
        text = output_of(["lifetimes", "--baseline=" + self.first, *(self.by if by is None else by), "--json",
                          "--fail-if=" + self.allow, path], (0, 3))
        gate = json.loads(text)
        self.runs[side == "head"] += 1
        if side == "head":
            self.gone.update(gate["only_before"])
            self.new.update(gate["only_after"])
        for each in gate["figures"]:
            key = (each.get("phase", "the program"), each["figure"])
            figure = self.figures.setdefault(key, Figure(*key, each["allowed"]))
            getattr(figure, side).append(each["after"])

    def worse(self):
        return [each for each in self.stable() if each.is_worse()]

    def unstable(self):
        """The phases of which any figure differs within a side. If counts differ, bytes may agree by chance."""
        return {each.phase for each in self.figures.values() if not each.is_stable(self.runs)}

    def better(self):
        return [each for each in self.stable() if max(each.head) < min(each.base) / each.allowed]

    def stable(self):
        unstable = self.unstable()
        return [each for each in self.figures.values() if each.phase not in unstable]

    def functions(self, figure, path):
        """Names the functions that allocate more: ", by `parse_line` (+1)"."""
        sort = "bytes" if figure.figure == "bytes" else "blocks"
        part = ["--slice=@" + figure.phase] if self.by else []
        try:
            text = output_of(["lifetimes", "--diff=" + self.first, *part, "--sort=" + sort, "--json", path])
        except CannotJudge:
            return ""  # without call stacks
        grown = [each for each in json.loads(text)["contributors"] if each["change"] > 0][:3]
        return "".join((", by " if i == 0 else ", ") + f"`{code(each['name'])}` ({each['change']:+,})"
                       for i, each in enumerate(grown))


def code(name):
    return name.replace("`", "'").replace("\n", " ")


def system_modules(path):
    """Returns the build ids of the libraries that are no part of the project, as far as the trace names them."""
    reader = subprocess.Popen(["trace2cmt", "-s", path], stdout=subprocess.PIPE, text=True)
    found = (re.match(r"#module .* build_id=(\w+) .*path=(.*)", line) for line in reader.stdout)
    modules = {each[2]: each[1] for each in found if each and each[2].startswith(SYSTEM)}
    reader.wait()
    return modules


def changed_libraries(before, after):
    old, new = system_modules(before), system_modules(after)
    return sorted(path for path in old if path in new and old[path] != new[path])


def listed(title, names):
    return f"\n{title}: " + ", ".join(f"`{code(each)}`" for each in names[:LINES_MAX]) + "\n" if names else ""


def report(comparison, head, others):
    worse, better = comparison.worse(), comparison.better()
    text = f"### Allocations: {len(worse)} of {len(comparison.stable())} figures worse (allowed: {comparison.allow})\n\n"
    if others:
        text += f"Not judged: recorded with another {', '.join(others)}. Record the baseline again on this system.\n\n"
    lines = [each.line(comparison.functions(each, head)) for each in worse[:LINES_MAX]]
    lines += [f"and {len(worse) - LINES_MAX} more"] * (len(worse) > LINES_MAX)
    text += "".join(f"- {line}\n" for line in lines)
    if better:
        text += "\nFewer:\n\n" + "".join(f"- {each.line()}\n" for each in better[:LINES_MAX])
    text += listed("Not judged, since the recordings of one side differ", sorted(comparison.unstable() - comparison.gone))
    text += listed("Not judged, new", sorted(comparison.new - comparison.gone))
    text += listed("Not judged, only in the baseline", sorted(comparison.gone))
    if worse:
        words = output_of(["cmtreport", "--diff=" + comparison.first, head])
        text += f"\n<details><summary>The whole run</summary>\n\n```text\n{words}```\n</details>\n"
    return text


def compare(options, head):
    base = recordings(options.base)
    if not base:
        raise CannotJudge(f"{options.base}: no recordings (*.cmt)")
    comparison = Comparison(base, options.allow)
    for path in head:
        comparison.judge(path, "head")
    others = []
    if comparison.worse():
        with tempfile.TemporaryDirectory() as folder:
            for i in range(CONFIRMING_RUNS):
                comparison.judge(record(options.command, os.path.join(folder, f"{i}.cmt")), "head")
        others = changed_libraries(base[0], head[0])
    text = report(comparison, head[0], others)
    return text, 3 if comparison.worse() and not others else 0


def gate(options):
    for tool in ("cmttrace", "lifetimes", "cmtreport", "trace2cmt"):
        if shutil.which(tool) is None:
            raise CannotJudge(f"{tool} is not in PATH")
    asked = subprocess.run(["lifetimes", "--baseline=/dev/null", "--fail-if=" + options.allow, "/dev/null"], stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True, check=False)
    if asked.returncode == 2:
        raise WrongUse(asked.stderr.splitlines()[0].replace("lifetimes: --fail-if", "--allow"))
    os.makedirs(options.out, exist_ok=True)
    for path in recordings(options.out):
        os.remove(path)
    run(options.command)
    head = [record(options.command, os.path.join(options.out, f"{i}.cmt"), i == 1) for i in range(1, options.runs + 1)]
    if options.base and os.path.isdir(options.base):
        text, status = compare(options, head)
    else:
        text, status = "### Allocations: recorded, and not judged: there is no baseline yet\n", 0
    print(text)
    if options.summary:
        with open(options.summary, "w", encoding="utf-8") as file:
            file.write(text)
    return status


def main():
    parser = argparse.ArgumentParser(description="Compares the allocations of a command with a baseline.")
    parser.add_argument("--out", required=True, help="the folder for the recordings; those in it are removed")
    parser.add_argument("--base", help="the folder of the baseline's recordings; if it is missing nothing is judged")
    parser.add_argument("--allow", default="allocations+0%,bytes+1%", help="as --fail-if of lifetimes (%(default)s)")
    parser.add_argument("--runs", type=int, default=2, help="recordings of the command (%(default)s)")
    parser.add_argument("--summary", help="also write the report, in Markdown, to this file")
    parser.add_argument("command", nargs="+", help="the program with its arguments; not a script that starts it")
    options = parser.parse_args()
    if options.runs < 2:
        parser.error("--runs: 2 or more, to find what differs from run to run")
    if options.base and os.path.realpath(options.base) == os.path.realpath(options.out):
        parser.error("--out would replace the baseline")
    options.allow = re.sub(r"\+0(?=,|$)", "+0%", options.allow.replace(" ", ""))
    try:
        return gate(options)
    except WrongUse as error:
        parser.error(str(error))
    except CannotJudge as error:
        print(f"gate.py: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
