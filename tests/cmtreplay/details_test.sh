# The report has latencies by kind of call, and counters or why there are none. --touch and --pin have an effect.
/usr/bin/python3 "$SOURCE/tests/cmtreplay/make_trace.py" 40000 > t.trace
for touch in none first page all; do
  cmtreplay --touch=$touch --runs=1 --alloc=libc --json t.trace > $touch.json 2> words
done
/usr/bin/python3 - << 'END'
import json
peaks = []
for touch in ("none", "first", "page", "all"):
    with open(touch + ".json") as file:
        report = json.load(file)
    assert report["mode"]["touch"] == touch
    libc = report["allocators"][0]
    peaks.append(libc["peak_resident_bytes"])
    for kind in ("malloc", "free", "calloc", "realloc", "aligned"):
        latency = libc["latency"][kind]
        assert latency["samples"] > 5, kind
        assert 0 <= latency["p50_ns"] <= latency["p90_ns"] <= latency["p99_ns"] <= latency["p999_ns"] <= latency["max_ns"]
    calls = sum(latency["samples"] for latency in libc["latency"].values())
    assert report["trace"]["calls"] / 64 * 0.7 < calls < report["trace"]["calls"] / 64 * 1.4, calls
    missing = report["mode"]["counters_missing"]
    assert (missing is None) == any(value is not None for value in libc["counters"].values())
# The last two differ at most by the bytes that an allocator itself writes.
assert peaks[0] < peaks[1] < peaks[2] and peaks[3] > peaks[2] * 0.99, peaks
END
cmtreplay --runs=1 t.trace > table 2> words
grep -q '^ns of one call  *malloc p50' table
grep -qE '^(no hardware counters here: |a call  *instructions)' table

cmtreplay --pin=0 --runs=1 --alloc=null t.trace > table 2> words
status=0
cmtreplay --pin=1023 --runs=1 --alloc=null t.trace > table 2> words || status=$?
test $status = 1
grep -qx 'cmtreplay: binding to the CPUs of --pin: Invalid argument' words
# Recordings of one command are one input: the table has ranges, and the verdict is of all of them.
head -n 4000 t.trace > half.trace
if ldconfig -p | grep -q libjemalloc.so.2; then
  head -n 8000 t.trace > whole.trace
  cmtreplay --same-program --runs=2 --alloc=libc --alloc=jemalloc whole.trace half.trace > same 2> words
  head -n 1 same | grep -qx '2 recordings of one program: whole.trace, half.trace'
  grep -qE '^libc  .* to .* to ' same
  grep -qE '^peak of 2 recordings: (libc|jemalloc) ' same
  cmtreplay --same-program --runs=2 --alloc=libc --alloc=jemalloc --json whole.trace half.trace > same.json 2> words
  /usr/bin/python3 -c '
import json
report = json.load(open("same.json"))
assert report["schema"] == "cmt.same_program/1" and [one["schema"] for one in report["recordings"]] == ["cmt.replay/1"] * 2
pair = report["peak_comparisons"][0]
ratios = [one["peak_comparisons"][0] for one in report["recordings"]]
ratios = [one["ratio"] if one["less"] == pair["less"] else 1 / one["ratio"] for one in ratios]
assert pair["low"] <= min(ratios) * 1.0001 and pair["high"] >= max(ratios) * 0.9999, (pair, ratios)'
  cmtreplay --same-program --runs=1 --csv whole.trace half.trace 2> words | cut -d , -f 1 | uniq -c | grep -q ' 2 half.trace$'
  cmtreplay --runs=2 --alloc=libc --alloc=jemalloc half.trace 2> words | grep -q '^peak of this recording: '
else
  echo 'skipped: verdicts of several recordings: there is no jemalloc'
fi
