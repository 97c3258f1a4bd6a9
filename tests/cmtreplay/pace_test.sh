# --pace keeps the recorded times or a multiple; the report says how much faster than the program a replay was.
for tag in $(seq 1 40); do
  echo "malloc(64) = ${tag}000<$tag> thread=$((tag % 2)) time=$((tag * 2500000))"
done > t.trace
for pace in real x4; do
  for how in '' --stream --threads=1; do
    cmtreplay $how --pace=$pace --alloc=libc --runs=1 --json t.trace 2> words > report.json
    /usr/bin/python3 - $pace << 'END'
import json, sys
pace = 1 if sys.argv[1] == "real" else float(sys.argv[1][1:])
with open("report.json") as file:
    report = json.load(file)
recorded = 39 * 2500000
assert report["trace"]["recorded_ns"] == recorded and report["mode"]["pace"] == pace
libc = report["allocators"][0]
assert libc["death"] is None
# No event comes before its time; how much later depends on the machine. The clock does not count waits for operations.
assert libc["wall_ns"]["min"] + libc["starved_ns"]["min"] >= recorded / pace
assert libc["speed_up"] <= pace or libc["starved_ns"]["min"] > 0
END
  done
done
# A lane that waits for its time does not count as hanging.
cmtreplay --pace=x0.1 --timeout=1s --alloc=libc --runs=1 <(head -4 t.trace | sed 's/time=10000000/time=140000000/') > table 2> words
status=0
cmtreplay --pace=real --runs=1 <(sed 's/ time=.*//' t.trace) > out 2> words || status=$?
test $status = 1
grep -qx 'cmtreplay: .*: has no recorded times (needed by --pace)' words
