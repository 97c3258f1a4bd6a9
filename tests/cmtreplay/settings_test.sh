# Settings after an allocator's name are set only in its own environment.
library=$BUILD/tests/cmtreplay/libfaulty_set_by_environment.so
echo 'malloc(100) = 1000<1>' > t.trace
WASTE_KIB=8192 cmtreplay --alloc="$library" --alloc="$library,WASTE_KIB=1024" --alloc="$library,WASTE_KIB=0,A=b,c" \
  --runs=1 --json t.trace > report.json 2> words
/usr/bin/python3 - "$library" << 'END'
import json, sys
inherited, given, none = json.load(open("report.json"))["allocators"]
assert given["name"] == sys.argv[1] + ",WASTE_KIB=1024" and given["settings"] == ["WASTE_KIB=1024"]
assert none["settings"] == ["WASTE_KIB=0", "A=b,c"] and inherited["settings"] == []
for result, kib in ((inherited, 8192), (given, 1024), (none, 0)):
    assert kib << 10 <= result["peak_resident_bytes"] <= (kib << 10) + (64 << 10), (kib, result["peak_resident_bytes"])
END

# A message that an allocator writes in each run is printed once. So is jemalloc's about an option that it does not know.
echo 'malloc(22222) = 1000<1>' > message.trace
cmtreplay --alloc="$BUILD/tests/cmtreplay/libfaulty_at_size.so" --runs=3 message.trace > table 2> words
test "$(grep -cx '22,222 bytes are asked for' words)" = 1
