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
