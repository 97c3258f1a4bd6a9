# The example allocator never frees, so its memory is about the sum of all requested bytes.
bump=$BUILD/cmtreplay/libexample_bump.so
/usr/bin/python3 - > t.trace << 'END'
for tag in range(1, 5001):
    print(f"malloc(4096) = {tag << 13:x}<{tag}>")
    print(f"free({tag << 13:x}<{tag}>)")
print("memalign(64, 100) = 10<5001>")
print("realloc(10<5001>, 300) = 20<5002>")
END
cmtreplay --alloc=$bump --alloc=libc --runs=1 --json t.trace > bump.json 2> words
grep -q 'has no memalign; emulated' words
/usr/bin/python3 - << 'END'
import json
with open("bump.json") as file:
    bump, libc = json.load(file)["allocators"]
total = 5000 * 4096
assert total <= bump["peak_resident_bytes"] <= total * 1.02 + 65536, bump["peak_resident_bytes"]
assert libc["peak_resident_bytes"] < 1 << 20
assert "memalign" in bump["replaced_calls"] and "malloc" not in bump["replaced_calls"]
# The working set at a mark has the pages of a hundredth of the trace, and no more.
marks = bump["marks"][2:]  # the first mark is at the first event, with most bytes live
assert all(40 <= mark["working_set_pages"] <= 80 for mark in marks if mark["working_set_pages"] is not None)
END
