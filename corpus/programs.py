"""Programs that script/corpus records and bench/fidelity measures. Each has a command and its input; a server also has a load.

Every program does the same work each time: its input is generated from seeds, and a server answers a fixed list of requests. A
function makes each program in a folder. The function takes `scale`, by which it multiplies the work."""
import contextlib
import dataclasses
import glob
import os
import pwd
import random
import shutil
import socket
import subprocess
import threading
import time

CC_SOURCE = """#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <unordered_map>
#include <vector>
std::map<std::string, std::vector<std::regex>> table;
int main() {
  std::unordered_map<std::string, std::function<int(int)>> calls;
  for (int i = 0; i < 9; ++i) calls[std::to_string(i)] = [i](int n) { return n + i; };
  table["a"].emplace_back("(a|b)*[^c]+", std::regex::extended);
  std::cout << std::regex_match("abd", table["a"][0]) << calls["1"](2) << std::endl;
}
"""
PYTHON_JSON = """import json
records = [{"id": i, "name": f"name {i}", "tags": ["a", str(i % 7)], "position": [i / 3, -i]} for i in range(30000)]
for round in range(ROUNDS):
    text = json.dumps(records)
    records = json.loads(text)
"""
SQL = """create table t(a integer primary key, b text, c text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 150000)
  insert into t select i, 'row ' || i, hex(i * 7919) from n;
create index by_c on t(c);
select count(*), count(distinct substr(c, 1, 4)) from t;
update t set b = b || c where a % 3 = 0;
delete from t where a % 2 = 0;
select sum(length(b)) from t join (select c as d from t where a % 5 = 1) on c = d;
"""
PERL = """my %words; my $seed = 7;
for my $i (1 .. 300000) { $seed = ($seed * 1103515245 + 12345) % 2147483648; push @{$words{$seed % 40000}}, "x" x ($seed % 90); }
my @long = sort { $a cmp $b } map { join ",", @{$words{$_}} } keys %words;
delete $words{$_} for grep { $_ % 2 } keys %words;
my %lengths; $lengths{length $_}++ for @long; print scalar(keys %lengths), "\\n";
"""
LUA = """local t, seed = {}, 7
for round = 1, ROUNDS do
  for i = 1, 60000 do
    seed = (seed * 1103515245 + 12345) % 2147483648
    t[seed % 50000] = {name = "name " .. seed, tags = {seed % 7, tostring(i)}, back = t[(seed + 1) % 50000] and i}
  end
  if round % 6 == 3 then for k in pairs(t) do if k % 3 ~= 0 then t[k] = nil end end end
end
local words = {}
for k, v in pairs(t) do words[#words + 1] = v.name .. table.concat(v.tags, ",") end
table.sort(words); print(#words, #table.concat(words, ";"))
"""
PHP = """<?php
for ($round = 0; $round < ROUNDS; ++$round) {
$table = []; $seed = 7 + $round;
for ($i = 0; $i < 200000; ++$i) {
  $seed = ($seed * 1103515245 + 12345) % 2147483648;
  $table[$seed % 30000][] = ["id" => $i, "text" => str_repeat("x", $seed % 200)];
  if ($i % 50000 == 49999) foreach ($table as $key => $rows) if ($key % 3 == 0) unset($table[$key]);
}
$text = json_encode($table); $again = json_decode($text, true); unset($table);
ksort($again); echo count($again), " ", strlen($text), "\\n"; unset($again, $text);
}
"""
PHP_PAGE = """<?php
$n = (int)($_GET["n"] ?? 1); $rows = [];
for ($i = 0; $i < 300 + $n % 900; ++$i) $rows[] = ["id" => $i, "name" => "name " . ($i * $n), "text" => str_repeat("y", ($i * $n) % 300)];
usort($rows, fn($a, $b) => strcmp($a["name"], $b["name"])); echo json_encode($rows);
"""
PYTHON_SERVER = """import http.server, json, sys, collections, threading
cache, lock = collections.OrderedDict(), threading.Lock()
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65536
    def do_GET(self):
        n = int(self.path.rsplit("=", 1)[1])
        with lock:
            page = cache.get(n % 500)
        if page is None:
            page = json.dumps([{"id": i, "name": f"name {i * n}", "text": "z" * (i * n % 300)} for i in range(100 + n % 400)]).encode()
            with lock:
                cache[n % 500] = page
                if len(cache) > 300:
                    cache.popitem(last=False)
        self.send_response(200); self.send_header("Content-Length", str(len(page))); self.end_headers(); self.wfile.write(page)
    def log_message(self, *_): pass
class Server(http.server.ThreadingHTTPServer):
    daemon_threads = False
server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
import signal
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
server.serve_forever(); server.server_close()
"""
POSTGRES_SQL = """create table t as select i as a, 'row ' || i as b, md5(i::text) as c from generate_series(1, 100000) i;
create index by_c on t(c);
select count(*), count(distinct substr(c, 1, 4)) from t;
update t set b = b || c where a % 3 = 0;
select string_agg(b, ',' order by c) is null from t;
select sum(length(x.b)) from t x join (select c as d from t where a % 5 = 1) y on x.c = y.d;
select jsonb_object_agg(c, jsonb_build_object('a', a, 'b', b)) is null from t where a < 30000;
"""


BASH = """words=(); declare -A counts
for ((round = 0; round < ROUNDS; ++round)); do
  for ((i = 0; i < 6000; ++i)); do
    word=w$((i * 7919 % 1009)); words+=("$word-$i"); counts[$word]=$((counts[$word] + 1)); [[ ${words[-1]} == *7-* ]] && words=("${words[@]:i % 50}")
  done
  text="${words[*]}"; words=(${text//w1/x}); words=("${words[@]:0:300}")
done
echo "${#counts[@]} ${#words[@]}"
"""
CMAKE = """cmake_minimum_required(VERSION 3.25)
project(many NONE)
set(names)
foreach(i RANGE ROUNDS)
  string(REPEAT "word${i};" 20 words)
  list(TRANSFORM words PREPEND "p_" OUTPUT_VARIABLE prefixed)
  list(REMOVE_DUPLICATES prefixed)
  string(REGEX REPLACE "[0-3]" "x" text "${prefixed}")
  set(value_${i} "${text}" CACHE INTERNAL "")
  add_custom_target(target_${i} COMMAND ${CMAKE_COMMAND} -E echo "${text}" DEPENDS ${names})
  list(APPEND names target_${i})
  list(LENGTH names n)
  if(n GREATER 8)
    list(POP_FRONT names)
  endif()
endforeach()
"""
NODE = """const { Worker, isMainThread, workerData } = require('worker_threads');
const work = (seed, rounds) => {
  let kept = new Map(), sum = 0;
  for (let i = 0; i < rounds * 40; ++i) {
    seed = (seed * 48271) % 2147483647;
    const buffer = Buffer.alloc(9000 + seed % 60000, i & 255);
    kept.set(seed % 300, buffer);
    const text = JSON.stringify({ i, hash: require('crypto').createHash('sha256').update(buffer).digest('hex'), list: [...Array(50).keys()] });
    sum += require('zlib').gunzipSync(require('zlib').gzipSync(text)).length;
    if (i % 1000 == 999) kept = new Map([...kept].slice(100));
  }
  return sum;
};
if (isMainThread) { for (const seed of [3, 5]) new Worker(__filename, { workerData: seed }); console.log(work(7, ROUNDS)); }
else work(workerData, ROUNDS);
"""


@dataclasses.dataclass
class Program:
    """`command` is run in `folder`. A server has a `load`: it is called with the running process, and ends it. `input` is a
    file for standard input. `traits` are "threads" and "server", as the table shows them."""
    name: str
    command: list
    folder: str
    traits: tuple = ()
    load: object = None
    input: str = "/dev/null"
    user: str = None
    settings: dict = dataclasses.field(default_factory=dict)

    def run(self, environment):
        """Returns (processor time in s, VmHWM in bytes). Raises if the program fails."""
        other = {}
        if self.user and os.getuid() == 0:
            account = pwd.getpwnam(self.user)
            other = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        with open(self.input, "rb") as standard_input:
            process = subprocess.Popen(self.command, env={**environment, **self.settings}, cwd=self.folder, stdin=standard_input,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **other)
        try:
            if self.load:
                self.load(process)
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise RuntimeError(f"{self.name}: exit {process.returncode}")
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def words_text(lines):
    chosen = random.Random(7)
    words = ["".join(chosen.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(chosen.randint(2, 11))) for _ in range(4000)]
    return "".join(" ".join(chosen.choices(words, k=chosen.randint(3, 18))) + "\n" for _ in range(lines))


def connect(process, address):
    """Returns a connection to a server. Waits until the server has started."""
    for _ in range(3000):
        if process.poll() is not None:
            raise RuntimeError(f"a server ended with {process.returncode}")
        connection = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
        try:
            connection.connect(address)
            return connection
        except OSError:
            connection.close()
            time.sleep(0.01)
    raise TimeoutError(address)


def in_parallel(count, body):
    """Calls body(0), ..., body(count - 1), each in a thread of its own."""
    failed = []

    def run(number):
        try:
            body(number)
        except Exception as error:  # raised again below, so that it ends this program
            failed.append(error)
    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def redis_load(address, requests):
    def command(*words):
        return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)

    def client(process, number):
        chosen = random.Random(number)
        with connect(process, address) as connection, connection.makefile("rwb") as file:
            for _ in range(requests):
                key = b"%d" % chosen.randrange(4000)
                for words in ((b"SET", b"s" + key, b"v" * chosen.randrange(1500)), (b"LPUSH", b"l" + key, b"w" * chosen.randrange(200)),
                              (b"HSET", b"h" + key[:2], key, b"x" * chosen.randrange(300)),
                              (b"ZADD", b"z" + key[:1], key, key), (b"DEL", b"s%d" % chosen.randrange(4000))):
                    file.write(command(*words))
                file.flush()
                for _ in range(5):
                    file.readline()

    def load(process):
        in_parallel(4, lambda number: client(process, number))
        with connect(process, address) as connection:
            connection.sendall(command(b"SHUTDOWN", b"NOSAVE"))
            connection.recv(100)
    return load


def memcached_load(address, requests):
    def client(process, number):
        chosen = random.Random(number)
        with connect(process, address) as connection, connection.makefile("rwb") as file:
            for _ in range(requests):
                key, size = chosen.randrange(30000), chosen.randrange(3000)
                file.write(b"set k%d 0 0 %d\r\n%s\r\n" % (key, size, b"v" * size))
                file.flush()
                file.readline()

    def load(process):
        in_parallel(4, lambda number: client(process, number))
        process.terminate()
    return load


def http_load(port, requests, path, stop):
    def client(process, number):
        chosen = random.Random(number)
        for _ in range(requests // 25):
            with connect(process, ("127.0.0.1", port)) as connection:
                with contextlib.suppress(ConnectionError):
                    for _ in range(25):
                        connection.sendall(b"GET %s%d HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n" % (path, chosen.randrange(5000)))
                        if not read_answer(connection):
                            break

    def load(process):
        in_parallel(4, lambda number: client(process, number))
        process.send_signal(stop)
    return load


def read_answer(connection):
    """Returns whether the server will answer another request on this connection."""
    file = connection.makefile("rb")
    length, keeps = 0, True
    while (line := file.readline().strip().lower()):
        if line.startswith(b"content-length:"):
            length = int(line.split(b":")[1])
        if line == b"connection: close":
            keeps = False
    if length:
        file.read(length)
    else:
        file.read()
    return keeps and length > 0


def git_repository(folder):
    """Makes a repository with 1,000 versions of 60 files, by git fast-import."""
    chosen, stream = random.Random(7), []
    texts = [words_text(120).splitlines() for _ in range(60)]
    for version in range(1000):
        stream.append(f"commit refs/heads/main\ncommitter a <a@b> {1700000000 + version} +0000\ndata 1\nx\n")
        for _ in range(4):
            number = chosen.randrange(60)
            texts[number][chosen.randrange(120)] = f"line {version} {chosen.random()}"
            text = "\n".join(texts[number])
            stream.append(f"M 100644 inline f{number}\ndata {len(text)}\n{text}\n")
    path = folder + "/repository.git"
    subprocess.run(["git", "init", "-q", "--bare", path], check=True)
    subprocess.run(["git", "-C", path, "fast-import", "--quiet"], input="".join(stream).encode(), check=True)
    return path


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def cc1plus(folder, _):
    subprocess.run(["g++", "-E", "-std=c++17", write(folder, "a.cpp", CC_SOURCE), "-o", folder + "/a.ii"], check=True)
    program = subprocess.run(["g++", "-print-prog-name=cc1plus"], check=True, capture_output=True, text=True).stdout.strip()
    return Program("cc1plus", [program, "-quiet", "-O2", "-std=c++17", "-fpreprocessed", folder + "/a.ii", "-o", "/dev/null"], folder)


def python3(folder, scale):
    return Program("python3", ["/usr/bin/python3", write(folder, "a.py", PYTHON_JSON.replace("ROUNDS", str(3 * scale)))], folder)


def clang(folder, _):
    return Program("clang++", ["clang++-14", "-std=c++17", "-O2", "-c", write(folder, "a.cpp", CC_SOURCE), "-o", folder + "/a.o"], folder)


def bash(folder, scale):
    return Program("bash", ["bash", write(folder, "a.sh", BASH.replace("ROUNDS", str(scale)))], folder)


def cmake(folder, scale):
    os.mkdir(folder + "/source")
    write(folder, "source/CMakeLists.txt", CMAKE.replace("ROUNDS", str(400 * scale)))
    return Program("cmake", ["cmake", "-G", "Unix Makefiles", "-S", folder + "/source", "-B", folder + "/build"], folder)


def build(folder, scale):
    names = [f"part{number}" for number in range(3 * scale)]
    for number, name in enumerate(names):
        text = "".join(f"int {name}_{i}(const char *a, int n) {{ int sum = {i}; for (int k = 0; k < n; ++k) sum += a[k] * {i + number}; "
                       f"return sum > {i * 7} ? snprintf(0, 0, \"%s %d\", a, sum) : sum; }}\n" for i in range(120))
        write(folder, name + ".c", "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n" + text)
    write(folder, "main.c", "int main(void) { return 0; }\n")
    objects = " ".join(name + ".o" for name in (*names, "main"))
    write(folder, "Makefile", f"CFLAGS = -O2 -g\nall: {objects}\n\t$(CC) -o all {objects}\n")
    return Program("make, cc", ["make", "-s"], folder, ("processes",))


def node(folder, scale):
    return Program("node", ["node", write(folder, "a.js", NODE.replace("ROUNDS", str(scale)))], folder, ("threads",))


def sqlite3(folder, scale):
    return Program("sqlite3", ["sqlite3", ":memory:", ".read " + write(folder, "a.sql", "drop table t;\n".join([SQL] * scale))], folder)


def perl(folder, _):
    return Program("perl", ["perl", write(folder, "a.pl", PERL)], folder)


def lua(folder, scale):
    return Program("lua", ["lua5.4", write(folder, "a.lua", LUA.replace("ROUNDS", str(6 * scale)))], folder)


def jq(folder, scale):
    chosen = random.Random(7)
    rows = ",".join('{"id":%d,"name":"%d","tags":["a","%d"]}' % (i, chosen.randrange(10**9), i % 7) for i in range(60000))
    return Program("jq", ["jq", "-c", "group_by(.tags[1]) | map({n: length, s: (map(.name) | sort | .[0:5])})",
                          *[write(folder, "a.json", f"[{rows}]")] * scale], folder)


def php(folder, scale):
    return Program("php", ["php", "-n", "-d", "memory_limit=-1", write(folder, "a.php", PHP.replace("ROUNDS", str(scale)))], folder, settings={"USE_ZEND_ALLOC": "0"})


def sort(folder, _):
    return Program("sort", ["sort", "-S64M", "--parallel=2", write(folder, "a.txt", words_text(220000)), "-o", "/dev/null"], folder,
                   ("threads",), settings={"LC_ALL": "C"})


def xz(folder, _):
    return Program("xz", ["xz", "-2", "-T2", "--block-size=4MiB", "-k", "-c", write(folder, "a.txt", words_text(150000))], folder, ("threads",))


def git_pack(folder, _):
    return Program("git pack-objects", ["git", "--git-dir=" + git_repository(folder), "pack-objects", "--all", "--stdout", "--threads=2",
                                        "--no-reuse-delta", "-q"], folder, ("threads",))


def ffmpeg(folder, scale):
    return Program("ffmpeg, x264", ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=480x270:rate=25", "-t", str(5 * scale), "-c:v", "libx264",
                                    "-preset", "fast", "-threads", "2", "-f", "null", "-"], folder, ("threads",))


def postgres(folder, scale):
    binaries = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
    data = folder + "/data"
    program = Program("postgres --single", [binaries + "/initdb", "-A", "trust", "-U", "postgres", "--no-sync", "-D", data], folder, user="postgres")
    if os.getuid() == 0:
        shutil.chown(folder, "postgres")
    program.run(dict(os.environ))
    program.command = [binaries + "/postgres", "--single", "-j", "-F", "-O", "-c", "work_mem=32MB", "-c", "temp_buffers=16MB", "-D", data, "postgres"]
    program.input = write(folder, "a.sql", (POSTGRES_SQL.replace("\n", "\n\n") + "drop table t;\n\n") * scale)
    return program


def redis(folder, scale):
    return Program("redis", ["redis-server", "--port", "0", "--unixsocket", folder + "/s", "--save", "", "--dir", folder], folder,
                   ("threads", "server"), redis_load(folder + "/s", 1500 * scale))


def memcached(folder, scale):
    return Program("memcached", ["memcached", "-s", folder + "/s", "-t", "2", "-m", "64", *(["-u", "root"] if os.getuid() == 0 else [])], folder,
                   ("threads", "server"), memcached_load(folder + "/s", 6000 * scale))


def php_server(folder, scale):
    port = free_port()
    write(folder, "page.php", PHP_PAGE)
    return Program("php -S", ["php", "-n", "-q", "-S", f"127.0.0.1:{port}", folder + "/page.php"], folder, ("server",),
                   http_load(port, 300 * scale, b"/?n=", 2), settings={"USE_ZEND_ALLOC": "0"})


def python_server(folder, scale):
    port = free_port()
    return Program("python3, HTTP", ["/usr/bin/python3", write(folder, "server.py", PYTHON_SERVER), str(port)], folder, ("threads", "server"),
                   http_load(port, round(500 * scale), b"/?n=", 15))


# For each name: the function that makes the program in a folder, and the command that has to be installed.
PROGRAMS = {"cc1plus": (cc1plus, "g++"), "clang": (clang, "clang++-14"), "bash": (bash, "bash"), "cmake": (cmake, "cmake"),
            "build": (build, "make"), "node": (node, "node"), "python3": (python3, "/usr/bin/python3"), "sqlite3": (sqlite3, "sqlite3"), "perl": (perl, "perl"),
            "lua": (lua, "lua5.4"), "jq": (jq, "jq"), "php": (php, "php"), "sort": (sort, "sort"), "xz": (xz, "xz"),
            "git": (git_pack, "git"), "ffmpeg": (ffmpeg, "ffmpeg"), "postgres": (postgres, "psql"),
            "redis": (redis, "redis-server"), "memcached": (memcached, "memcached"), "php_server": (php_server, "php"),
            "python_server": (python_server, "/usr/bin/python3")}
