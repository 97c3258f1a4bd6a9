# Memory over time has marks with event, time and clock, one of them where most bytes are live. It also has slop, drain and
# timeline.
/usr/bin/python3 - > t.trace << 'END'
tag, live, time = 0, [], 1000
def step(call):
    global time
    time += 500
    print(f"{call} time={time}")
for i in range(20000):
    tag += 1
    step(f"malloc(1001) = {tag << 12:x}<{tag}>")
    live.append(tag)
    if i % 3 == 2: step(f"free({live[0] << 12:x}<{live[0]}>)"); live.pop(0)
for _ in range(10000): step(f"free({live[0] << 12:x}<{live[0]}>)"); live.pop(0)
END
for options in "" --stream; do
  cmtreplay $options --alloc=libc --alloc="$BUILD/cmtreplay/libexample_bump.so" --runs=1 --json t.trace > report.json 2> words
  /usr/bin/python3 - << 'END'
import json
with open("report.json") as file:
    report = json.load(file)
libc, bump = report["allocators"]
trace = report["trace"]
peak_live, peak_event = trace["peak_live_bytes"], trace["peak_live_bytes_event"]
assert peak_live == (20000 - 6666) * 1001 or peak_live == (20000 - 6665) * 1001
for result in (libc, bump):
    marks = result["marks"]
    assert len(marks) == 100 and marks[-1]["event"] == trace["events"]
    for figure in ("event", "time_ns", "clock_ns", "minor_faults"):
        values = [mark[figure] for mark in marks]
        assert values == sorted(values), figure
    assert all(mark["time_ns"] == 1000 + 500 * mark["event"] for mark in marks)
    peak, = [mark for mark in marks if mark["event"] == peak_event]
    assert peak["live_bytes"] == peak_live
    assert result["resident_bytes_at_peak_live"] == peak["resident_bytes"]
    assert abs(result["fragmentation"] - peak["resident_bytes"] / peak_live) < 1e-9
    assert result["end_resident_bytes"] == marks[-1]["resident_bytes"]
    assert all(mark["anonymous_bytes"] <= mark["resident_bytes"] for mark in marks)
    clocks = [sample["clock_ns"] for sample in result["timeline"]]
    assert clocks == sorted(clocks)
# For 1,001 bytes glibc takes a chunk of 1,024, and 8 of them are its header.
assert 1.0 < libc["fragmentation"] < 1.2
assert libc["slop_bytes_at_peak_live"] == peak_live // 1001 * 15, libc["slop_bytes_at_peak_live"]
assert libc["marks"][-1]["usable_bytes"] == trace["end_live_bytes"] // 1001 * 1016
assert libc["drained_resident_bytes"] < libc["end_resident_bytes"]
# An allocator that never frees has its peak at the end, and has no usable sizes.
assert bump["drained_resident_bytes"] == bump["end_resident_bytes"] == bump["peak_resident_bytes"] > libc["peak_resident_bytes"]
assert bump["slop_bytes_at_peak_live"] is None and bump["marks"][50]["usable_bytes"] is None
END
done
cmtreplay --alloc=libc --runs=1 t.trace 2> words | grep -q '^resident .* fragmentation$'

# A sixteenth of 40 MiB in huge pages is written. The rest is resident, and holds only zeros.
for i in $(seq 640); do echo "malloc(65536) = $(printf %x $((i * 65536)))<$i>"; done >sparse.trace
cmtreplay --touch=first --runs=1 --json --alloc=libc,GLIBC_TUNABLES=glibc.malloc.hugetlb=1 sparse.trace >huge.json 2>words
cmtreplay --touch=first --huge-pages=off --runs=1 --json --alloc=libc,GLIBC_TUNABLES=glibc.malloc.hugetlb=1 sparse.trace >small.json 2>words
/usr/bin/python3 - << 'END'
import json
huge, small = (json.load(open(name))["allocators"][0]["memory_runs"][0] for name in ("huge.json", "small.json"))
assert "zero_bytes" not in small and small["peak_resident_bytes"] < 4 << 20, small
if huge["huge_page_bytes"] == 0:
    print("skipped: huge pages: this machine gave none")
else:
    written = huge["peak_resident_bytes"] - huge["zero_bytes"]
    assert abs(written - small["peak_resident_bytes"]) < 1 << 20, (huge, small)
    assert huge["zero_bytes"] < huge["huge_page_bytes"], huge
END

# The mean of a program that replaces one of four buffers and then waits is that of four buffers.
/usr/bin/python3 - >waits.trace <<'END'
time, tag = 0, 0
for i in range(400):
    time += 5000000
    if i >= 4: print(f"free({(tag - 3) << 24:x}<{tag - 3}>) time={time}")
    tag += 1
    print(f"malloc(1048576) = {tag << 24:x}<{tag}> time={time + 100}")
END
cmtreplay --runs=1 --json --alloc=libc,GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072 waits.trace >waits.json 2>words
/usr/bin/python3 - << 'END'
import json
libc = json.load(open("waits.json"))["allocators"][0]
assert 3.95 * 2**20 < libc["mean_resident_bytes"] < 4.1 * 2**20, libc["mean_resident_bytes"]
END
