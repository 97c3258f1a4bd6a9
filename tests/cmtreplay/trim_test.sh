# --trim-at replays a trace without and with calls of malloc_trim at the end, at a mark, or every so often, and reports
# what they give back.
{
  for tag in $(seq 2000); do echo "malloc(4000) = <$tag> time=$((tag * 1000000))"; done
  for tag in $(seq 1999); do echo "free(<$tag>) time=2000000000"; done
  echo 'mark("idle") time=3000000000'
  for tag in $(seq 3001 4000); do echo "malloc(100) = <$tag> time=$((tag * 1000000))"; done
} > t.trace
for place in end idle 'every 500ms'; do
  cmtreplay --trim-at="$place" --runs=2 --json t.trace > report.json 2> words
  test ! -s words
  /usr/bin/python3 - "$place" << 'END'
import json, sys
report = json.load(open("report.json"))
assert report["schema"] == "cmt.trims/1" and report["trim_at"] == sys.argv[1] and report["file"] == "t.trace"
assert report["calls"] == {"end": 1, "idle": 1, "every 500ms": 6}[sys.argv[1]], report["calls"]
libc, = report["allocators"]
assert libc["name"] == "libc" and libc["missing_calls"] == 0
end, peak = libc["before_teardown_resident_bytes"], libc["peak_resident_bytes"]
assert end["without"] > 7 << 20 and end["with"] < 2 << 20, end
assert abs(peak["without"] - peak["with"]) < 1 << 20
END
done

# The memory before a tear-down has the effect of a call at the end.
{
  for tag in $(seq 2000); do echo "malloc(4000) = <$tag> time=$((tag * 1000000))"; done
  for tag in $(seq 1800); do echo "free(<$tag>) time=2000000000"; done
  for tag in $(seq 3001 4000); do echo "malloc(100) = <$tag> time=$((tag * 1000000))"; echo "free(<$tag>) time=$((tag * 1000000))"; done
  for tag in $(seq 1801 2000); do echo "free(<$tag>) time=4000000000"; done
} > torn_down.trace
cmtreplay --trim-at=end --runs=2 --json torn_down.trace > report.json
jq -e '.calls == 1 and (.allocators[0].before_teardown_resident_bytes | .without > 7000000 and .with < 3000000)' report.json > out

cmtreplay --trim-at=idle --runs=2 t.trace > table
grep -qx 't.trace: 1 call of malloc_trim added (--trim-at=idle)' table
grep -q '^without -> with  *time ' table
grep -qE '^libc .* -> [0-9.]+ (KiB|MiB)$' table

# An allocator without such a call is reported.
cmtreplay --trim-at=end --alloc="$BUILD/cmtreplay/libexample_bump.so" --runs=1 t.trace > table 2> words
grep -q 'libexample_bump.so: has no counterpart for 1 call$' table

status=0
cmtreplay --trim-at=nowhere --runs=1 t.trace > table 2> words || status=$?
test $status = 1
grep -qx "cmtreplay: t.trace: has no mark 'nowhere' (--trim-at)" words

# A place that the trace does not have is reported before anything runs: no call of the allocator has ended its process.
echo 'malloc(99999) = <1> time=1000' > short.trace
status=0
cmtreplay --trim-at='every 10s' --alloc="$BUILD/tests/cmtreplay/libfaulty_at_size.so" short.trace > table 2> words || status=$?
test $status = 1
echo "cmtreplay: short.trace: has no place for --trim-at='every 10s': it is too short, or has no recorded times" |
  cmp - words
status=0
sed 's/ time=.*//' t.trace > timeless.trace
cmtreplay --trim-at='every 1s' --runs=1 timeless.trace > table 2> words || status=$?
test $status = 1
grep -q "has no place for --trim-at='every 1s'" words
for wrong in '--trim-at=' '--trim-at=every 1' '--trim-at=end --verify'; do
  status=0
  case $wrong in *' 1') cmtreplay "$wrong" t.trace 2> words || status=$? ;; *) cmtreplay $wrong t.trace 2> words || status=$? ;; esac
  test $status = 2
  grep -q -- '--trim-at' words
done
