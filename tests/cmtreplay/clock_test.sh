# With the recorded clock an allocator purges when it did so in the program. These times follow from the trace's times, and
# are the same in every run. The allocator's own threads sleep by that clock.
/usr/bin/python3 - > t.trace << 'END'
time = 5000000
def step(call, us):
    global time
    time += us * 1000
    print(f"{call} time={time}")
for i in range(1, 21):
    step(f"malloc({1 << 20}) = {i << 24:x}<{i}>", 1000)
for i in range(1, 21):
    step(f"free({i << 24:x}<{i}>)", 30000 if i % 5 else 730500)
step("malloc(1000) = 99000000<99>", 40000)
step("free(99000000<99>)", 1000)
END
rm -f log
for how in '' '--clock=recorded' '--stream' '--threads=1'; do
  for kind in thread calls sleeps; do
    test "$kind" = thread || test -z "$how" || continue
    cmtreplay $how --alloc="$BUILD/tests/cmtreplay/libclocked_by_$kind.so,CLOCK_LOG=$PWD/log" --runs=1 --json t.trace > report.json 2> words
    /usr/bin/python3 - "$how" $kind << 'END'
import json, os, re, sys
how, kind = sys.argv[1:]
events = [(re.match(r"\w+", line)[0], int(line.split("time=")[1]) // 1000) for line in open("t.trace")]
begin, end = events[0][1], events[-1][1] - events[0][1]
calls = [(call, us - begin) for call, us in events]

def by_thread():
    """It wakes 100 ms after it fell asleep, before a call at that time, or when a free signals it, before the next call."""
    lines, due = [], 100000
    for call, us in calls:
        while due <= us:
            lines.append(("tick", due))
            due += 100000
        lines.append((call, us))
        if call == "free":
            lines.append(("signal", us))
            due = us + 100000
    return lines

periods = {"nanosleep": 70000, "clock_nanosleep": 110000, "usleep": 130000, "poll": 170000}
by_sleeps = [(name, us) for name, period in periods.items() for us in range(period, end + 1, period)]
wanted = {"calls": calls, "thread": by_thread(), "sleeps": by_sleeps + calls}[kind]

with open("log") as file:
    lines = [(line.split()[0], int(line.split()[1])) for line in file]
os.remove("log")
with open("report.json") as file:
    report = json.load(file)
result = report["allocators"][0]
# The earlier runs are timed runs and runs for latencies. They read the recorded clock only with --clock=recorded.
runs = 3 if how == "--clock=recorded" else 1
if kind == "sleeps":  # threads that are due at the same time wake in the order in which they started
    assert [us for _, us in lines[-len(wanted):]] == sorted(us for _, us in wanted)
    lines, wanted = sorted(lines[-len(wanted):]), sorted(wanted)
    runs = 1
assert lines[-runs * len(wanted):] == wanted * runs, (how, kind, lines[-len(wanted):], wanted)
assert report["mode"]["clock"] == ("recorded" if how == "--clock=recorded" else "recorded in memory runs")
assert result["reads_clock"] and result["recorded_clock"] and result["clock_strays"] == 0

# A block is resident until 100 ms after its free, and then until the next purge.
purges = [us for name, us in wanted if kind == "calls" or name in ("tick", "signal")]
frees = [us for call, us in calls if call == "free"]
for mark in result["marks"]:
    now = mark["time_ns"] // 1000 - begin
    made = sum(call == "malloc" and us <= now for call, us in calls[:20])
    purged = sum(any(free + 100000 <= us <= now for us in purges) for free in frees if free <= now)
    if kind == "sleeps":
        purged = 0
    assert abs(mark["resident_bytes"] - result["start_resident_bytes"] - (made - purged << 20)) < 1 << 18, (how, kind, mark, made, purged)
END
  done
done
# Without times nobody knows the recorded time. A message says that the memory depends on the replay's speed.
sed 's/ time=.*//' t.trace > untimed.trace
status=0
cmtreplay --clock=recorded untimed.trace > out 2> words || status=$?
test $status = 1
test ! -s out
grep -qx 'cmtreplay: .*untimed.trace: has no recorded times (needed by --clock=recorded)' words
marked() { cmtreplay --alloc="$BUILD/tests/cmtreplay/libclocked_by_calls.so" --runs=1 "$@" 2> words | grep -c '^[^ ]*clocked.*(purges by the clock)'; }
test "$(marked untimed.trace)" = 1
test "$(marked --clock=system t.trace)" = 1
test "$(marked t.trace)" = 0
test "$(marked --pace=real <(head -3 t.trace))" = 0
cmtreplay --alloc=libc --runs=1 untimed.trace 2> words | grep -q '^libc  '
# A message says that an allocator does not follow the recorded clock. A crash of it is still reported with its event.
head -25 t.trace > few.trace
cmtreplay --alloc="$BUILD/tests/cmtreplay/libclocked_by_pipe.so" --runs=1 few.trace 2>&1 > table |
  grep -qx 'cmtreplay: .*pipe.so: a thread of its own did not sleep by the clock, and was not waited for'
# If the trace says that the recording was slower than the program, the clock is scaled. Half of each stretch is left out.
{ cat few.trace; for _ in 1 2 3 4 5 6; do echo '#stretch elapsed=1000000000 ran=500000000 waited=500000000 held=0 busy=1000000000'; done; } > slowed.trace
for trace in few slowed; do
  cmtreplay --alloc="$BUILD/tests/cmtreplay/libclocked_by_calls.so,CLOCK_LOG=$PWD/log" --runs=1 --json $trace.trace > $trace.json 2> words
  mv log $trace.log
done
/usr/bin/python3 - << 'END'
import json
few, slowed = ([int(line.split()[1]) for line in open(f"{name}.log")] for name in ("few", "slowed"))
wanted, found = few[-25:], slowed[-25:]
assert wanted[-1] > 600000 and all(abs(us / 2 - other) <= 1 for us, other in zip(wanted, found)), (wanted, found)
mode = json.load(open("slowed.json"))["mode"]
assert abs(mode["clock_scale"] - 0.5) < 0.001 and mode["clock_held_ns"] == 0, mode
assert abs(mode["clock_waited_ns"] - wanted[-1] * 500) < 1000000, mode
assert json.load(open("few.json"))["mode"]["clock_scale"] is None
END
cmtreplay --alloc=libc --runs=1 slowed.trace 2> words | grep -q '^recorded clock scaled by 0.50: of .* the threads waited .* for a processor$'
test "$(cmtreplay --alloc=libc --runs=1 --clock=system slowed.trace 2> words | grep -c scaled)" = 0
# The limits of waits for locks are on the recorded clock. The wait itself is on the system's.
cmtreplay --clock=recorded --alloc="$BUILD/tests/cmtreplay/libclocked_by_locks.so,CLOCK_LOG=$PWD/log" --runs=1 few.trace > table 2> words
test "$(grep -c '^waited' log)" -ge 360
test "$(grep -c '^early' log)" = 0
rm log
if [ -e "$BUILD/tests/cmtreplay/libclocked_by_stamps.so" ]; then
  cmtreplay --alloc="$BUILD/tests/cmtreplay/libclocked_by_stamps.so" --alloc=libc --runs=1 few.trace > table 2> words
  seen=$(cmtreplay --alloc="$BUILD/tests/cmtreplay/libclocked_by_stamps.so" --runs=1 --json few.trace 2> ignored |
    sed -n 's/.*"reads_time_stamps": *\([a-z]*\).*/\1/p' | head -n 1)
  case $seen in
    true) stamps=1 ;;
    null) stamps=0; echo 'skipped: whether stamps are read: this processor does not tell' ;;
    *) echo "reads_time_stamps: '$seen'" >&2; exit 1 ;;
  esac
  test "$(grep -c 'stamps.so: reads the processor.s time stamp counter, which does not tell the recorded time$' words)" = $stamps
  test "$(grep -cv 'does not say which pages' words)" = $stamps
fi
# The first thread starts a thread on the lane of one that has not ended yet. The old one does not wait for the new one.
cat > lanes.trace << 'END'
malloc(2000) = 1000000<1> thread=0 time=1000000
malloc(2000) = 2000000<2> thread=1 time=1100000
malloc(2000) = 3000000<3> thread=1 time=900000000
thread_exit() thread=1 time=900000000
malloc(2000) = 4000000<4> thread=2 time=950000000
free(1000000<1>) thread=0 time=999000000
END
cmtreplay --clock=recorded --alloc=libc --runs=1 --timeout=20s lanes.trace > table 2> words
# The clock is that of the furthest thread of the program, and no thread is more than 1 ms later than it.
/usr/bin/python3 - > threads.trace << 'END'
for i in range(1, 400):
    print(f"malloc(2000) = {i << 24:x}<{i}> thread={i % 4} time={1000000 + i * 700000}")
END
for how in '' --stream --order=strict; do
  cmtreplay $how --clock=recorded --alloc="$BUILD/tests/cmtreplay/libclocked_by_thread.so,CLOCK_LOG=$PWD/log" --runs=1 threads.trace > table 2> words
  /usr/bin/python3 - << 'END'
import os
with open("log") as file:
    runs = file.read().split("malloc 0\n")[1:]
os.remove("log")
assert len(runs) == 3
for run in runs:
    lines = [line.split() for line in run.splitlines()]
    times = [int(us) for what, us in lines if what == "malloc"]
    assert len(times) == 398 and times[-1] == max(times) == 398 * 700
    assert all(abs(us - 700 * (i + 1)) <= 3000 for i, us in enumerate(times)), times
    assert [int(us) for what, us in lines if what == "tick"] == [100000, 200000], lines
END
done
