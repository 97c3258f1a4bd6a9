# --command runs the real program with each allocator, and measures all of its processes, with a peak at the very end.
# Runs that fail, and runs with another output, are reported and left out.
bump=$BUILD/cmtreplay/libexample_bump.so
command='/usr/bin/python3 -c "
import os
small = bytearray(20 << 20)
print(len(small))
large = bytearray(64 << 20)
os._exit(0)"'
cmtreplay --command="$command" --alloc=libc --alloc="$bump" --runs=3 --json > report.json
/usr/bin/python3 - "$bump" << 'END'
import json, sys
report = json.load(open("report.json"))
assert report["schema"] == "cmt.program/1" and report["default"] == "libc"
libc, bump = report["allocators"]
assert bump["name"] == sys.argv[1]
for row in (libc, bump):
    assert len(row["runs"]) == 3 and row["warnings"] == [] and row["predicted_cpu"] is None
    for run in row["runs"]:
        assert run["fault"] == "" and run["wall_ns"] > 0 and run["minor_faults"] > (84 << 20) // 4096
        assert 20 << 20 <= run["mean_anonymous_bytes"] <= run["peak_anonymous_bytes"] <= run["peak_resident_bytes"] or \
            run["mean_anonymous_bytes"] < 20 << 20 <= run["peak_anonymous_bytes"], run
assert libc["wall"]["ratio"] == 1 and libc["anonymous_peak"]["predicted_bytes"] is None
END
# The peak at the end is seen where a process may be traced.
if cmtreplay --command='/bin/true' --runs=1 > words && grep -qs 0 /proc/sys/kernel/yama/ptrace_scope; then
  /usr/bin/python3 -c '
import json
for row in json.load(open("report.json"))["allocators"]:
    for run in row["runs"]: assert 84 << 20 <= run["peak_anonymous_bytes"] < 160 << 20, run'
fi

# Huge pages are off for the program, and for replays.
if grep -q THP_enabled /proc/self/status; then
  cmtreplay --huge-pages=off --command='grep -q "THP_enabled:[^0-9]*0" /proc/self/status' --runs=1 > table
fi
echo 'malloc(100) = <1>' > one.trace
# The recorded time is that of the program, which may idle after its last call.
printf '#cmt text=1\nmalloc(100) = <1> time=1000\n#stretch elapsed=5000000000 ran=1 waited=0 held=0 busy=1\n#cmt end=complete\n' > idle.trace
cmtreplay --command=/bin/true --runs=1 --json idle.trace > report.json
jq -e '.recorded_ns == 5000000000' report.json > out
cmtreplay --huge-pages=off --runs=1 --json one.trace > report.json
grep -q '"huge_pages": "off"' report.json

# Children count.
child='/usr/bin/python3 -c "import time; block = bytearray(30 << 20); time.sleep(0.6)"'
cmtreplay --command="$child & $child & wait" --runs=1 --json > report.json
/usr/bin/python3 -c '
import json
run, = json.load(open("report.json"))["allocators"][0]["runs"]
assert 60 << 20 <= run["peak_anonymous_bytes"] < 160 << 20, run'

# A child of vfork(2) has its parent's memory until it executes a program: that counts once.
. "$SOURCE/tests/cmtwatch/common.sh"
if made_vfork; then
  cmtreplay --command=./vfork --runs=1 --json > report.json &
  until_true '[ -e borrowed ]'
  sleep 0.1
  touch seen
  wait $!
  /usr/bin/python3 -c '
import json
run, = json.load(open("report.json"))["allocators"][0]["runs"]
assert 60 << 20 <= run["peak_anonymous_bytes"] < 100 << 20 and run["processes_at_peak"] == 1, run'
fi

# Runs that do not count.
status=0
cmtreplay --command='test -z "$LD_PRELOAD"' --alloc=libc --alloc="$bump" --runs=2 > table || status=$?
test $status = 1
grep -qxF "$bump: 2 runs of 2 left out: exit status 1" table
cmtreplay --command='echo "[$LD_PRELOAD]"' --alloc=libc --alloc="$bump" --runs=2 > table || true
grep -qxF "$bump: 2 runs of 2 left out: its output differs from that with the default" table
cmtreplay --command='echo $$' --alloc=libc --alloc="$bump" --runs=2 > table  # differs from run to run: not compared
test "$(grep -c 'left out' table)" = 0

# A server: it is ready, gets its load, and ends by its signal.
cat > server << 'END'
trap 'touch stopped; exit 0' USR1
touch up
while :; do sleep 0.02; done
END
serve() { rm -f up; cmtreplay --command='/bin/sh server' --ready='test -e up' --runs=1 --json "$@"; }
serve --load='sleep 0.2; echo done' --stop=USR1 > report.json
/usr/bin/python3 -c '
import hashlib, json
run, = json.load(open("report.json"))["allocators"][0]["runs"]
assert run["fault"] == "" and run["wall_ns"] >= 200_000_000
assert run["output_sha256"] == hashlib.sha256(b"done\n").hexdigest()'
serve --load=false --stop=USR1 > report.json || true
grep -qF 'the load failed: exit status 1' report.json
# A server whose load has failed, or which is not ready, ends by its signal, too. So the next run has its port.
rm stopped
serve --load=false --stop=USR1 > report.json || true
test -e stopped
cat > bound << 'END'
import signal, socket, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open("port") as port: number = int(port.read())
server = socket.socket()
server.bind(("127.0.0.1", number))
with open("port", "w") as port: port.write(str(server.getsockname()[1]))
time.sleep(1000)
END
echo 0 > port
cmtreplay --command='/usr/bin/python3 bound' --ready=false --load=/bin/true --timeout=1s --runs=2 > table || true
grep -qxF 'libc: 2 runs of 2 left out: it was not ready within 1 s' table
cmtreplay --command='/bin/false' --ready='test -e never' --load=/bin/true --runs=1 > table || true
grep -qF 'it ended before it was ready: exit status 1' table
cmtreplay --command='printf "one\ntw\033o\n\n" >&2; exit 3' --runs=2 > table || true
grep -qxF 'libc: 2 runs of 2 left out: exit status 3, after "tw o"' table

# Beside the program there is what the replay of its trace predicts.
for tag in $(seq 2000); do echo "malloc(1000) = <$tag> time=$tag"; done > t.trace
cmtreplay --command=/bin/true --alloc=libc --alloc="$bump" --runs=2 --json t.trace > report.json
/usr/bin/python3 << 'END'
import json
report = json.load(open("report.json"))
libc, bump = report["allocators"]
assert libc["predicted_cpu"] is None and bump["predicted_cpu"]["ratio"] > 0
assert bump["anonymous_peak"]["predicted_bytes"] > 0 and bump["anonymous_mean"]["error"] is not None
END
sed 's/ time=.*//' t.trace > timeless.trace
cmtreplay --command=/bin/true --alloc=libc --alloc="$bump" --runs=2 --json timeless.trace > report.json
/usr/bin/python3 -c '
import json
bump = json.load(open("report.json"))["allocators"][1]
assert bump["anonymous_peak"]["predicted_bytes"] > 0 and bump["anonymous_mean"]["predicted_bytes"] is None'

# A command, or a load, that does not end.
status=0
cmtreplay --command='sleep 1000' --timeout=1s --runs=2 --json >report.json 2>words || status=$?
test $status = 1
grep -qF 'it did not end within 1 s' report.json
cmtreplay --command='sleep 1000' --load='sleep 2000' --timeout=1s --runs=2 --json >report.json 2>words || status=$?
grep -qF 'the load did not end within 1 s' report.json

# Wrong use.
refuses() {  # refuses WORDS ARGUMENT...
  local wanted=$1 status=0
  shift
  cmtreplay "$@" > words 2>&1 || status=$?
  test $status = 2
  grep -qF -- "$wanted" words
}
refuses '--load needs --command' --load=x t.trace
refuses '--ready needs --load' --command=x --ready=y
refuses '--stop' --command=x --load=y --stop=NONE
refuses '--command needs a command' --command=' '
refuses 'one trace' --command=x t.trace report.json
status=0
cmtreplay --command=/no/such/program > words 2>&1 || status=$?
test $status = 1
grep -q '^cmtreplay: /no/such/program: No such file' words

# A program with a malloc of its own is not called the C library's, and one that cannot load an allocator has no runs.
if command -v cc >/dev/null && grep -qs 0 /proc/sys/kernel/yama/ptrace_scope; then
  cp "$bump" libjemalloc.so.2
  echo 'int main(void) { return 0; }' > own.c
  cc own.c -Wl,--no-as-needed ./libjemalloc.so.2 -o own
  cmtreplay --command=./own --runs=3 > words
  grep -qx 'libc: the program has libjemalloc.so.2 of its own, which serves it in place of libc' words
  if cc -static own.c -o static 2>/dev/null; then
    status=0
    cmtreplay --command=./static --alloc=libc --alloc="$bump" --runs=3 > words 2>&1 || status=$?
    test $status = 1
    grep -qF '3 runs of 3 left out: it did not load libexample_bump.so (is it linked statically, or another user' words
  fi
fi
