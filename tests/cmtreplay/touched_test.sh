# If the trace has which pages of a large block were touched, these are written at that point, and no others. Smaller blocks
# are touched whole. A free in another thread waits for the touches.
blocks() {
  echo '#cmt text=1'
  [ "$1" = untold ] || echo '#cmt touched_min=1048576'
  echo 'malloc(8388608) = <1>'
  echo 'malloc(1000000) = <2>'
  echo 'calloc(1, 4194304) = <3>'
  [ "$1" = untold ] || echo 'touch(<1>, 4096, 256, 4080)'
  [ "$1" = untold ] || echo 'resident(<1>, 4096, 0, 7340032)'
  echo 'malloc(100) = <4>'
}
peak() {
  cmtreplay --json --runs=1 --alloc=libc "$@" 2> words | /usr/bin/python3 -c '
import json, sys
report = json.load(sys.stdin)
result = report["allocators"][0]
print(result["peak_resident_bytes"] >> 18, report["trace"]["touch_events"], report["trace"]["peak_touched_bytes"])'; }
blocks told > told.trace
blocks untold > untold.trace
read -r told events touched < <(peak told.trace)
read -r untold none whole < <(peak untold.trace)
# 2 MiB of the first block, and the second block: 2.95 MiB. Without touches it would be 12.95 MiB
test $events = 2 && test $none = 0
test $touched = $((256 * 4096 + 1048576 + 1000000 + 100))
test $whole = $((8388608 + 1000000 + 4194304 + 100))
test $told -ge 11 && test $told -le 13
test $untold -ge 51 && test $untold -le 53
# The ratio of the table is to the live bytes without untouched pages, which the first line has.
cmtreplay --runs=1 --alloc=null told.trace 2> words | grep 'at most 13.0 MiB (2.95 MiB without untouched pages) and at most 4 blocks live'
cmtreplay --runs=1 --alloc=null untold.trace 2> words | grep 'at most 13.0 MiB and at most 4 blocks live'

{
  echo '#cmt text=1'
  echo '#cmt touched_min=16384'
  tag=0
  for i in $(seq 500); do
    tag=$((tag + 1))
    echo "malloc(65536) = <$tag> thread=$((i % 3))"
    echo "touch(<$tag>, 4096, 4, 0) thread=9"
    echo "touch(<$tag>, 4096, 0, 32768) thread=$(((i + 2) % 3))"
    echo "free(<$tag>) thread=$(((i + 1) % 3))"
  done
} > threads.trace
for how in --prepared --stream --order=strict --threads=1; do
  cmtreplay $how --json --runs=1 --alloc=libc --alloc=null threads.trace 2> words > report.json
  /usr/bin/python3 -c '
import json
report = json.load(open("report.json"))
assert report["trace"]["touch_events"] == 1000 and report["trace"]["calls"] == 1000
result = report["allocators"][0]
assert result["death"] is None and result["marks"][-1]["live_bytes"] == 0
assert report["mode"]["threads"] in (1, 3)
assert report["baseline"]["peak_resident_bytes"] <= 1 << 16, report["baseline"]["peak_resident_bytes"]'
done
cmtreplay --verify threads.trace | grep -q "no faults"

# Blocks that are filled one after the other and kept: the most that the replay writes is nearly all that lives.
for threads in 1 4; do
  LD_PRELOAD=$BUILD/preload/libcmttrace.so CMTTRACE_TOUCHED=auto CMTTRACE_OUT=hold.$threads.cmt "$BUILD/tests/preload/touched" hold $threads
  cmtreplay --json --runs=1 --alloc=null hold.$threads.cmt 2>words | /usr/bin/python3 -c '
import json, sys
trace = json.load(sys.stdin)["trace"]
assert trace["touched_min"] == 4096, trace
assert trace["peak_touched_bytes"] > 0.94 * trace["peak_live_bytes"], trace'
done
