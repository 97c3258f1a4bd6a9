# cmtreplay reports the allocator's memory alone: the null allocator has none, on one thread or several, prepared or
# streamed.
/usr/bin/python3 "$SOURCE/tests/cmtreplay/make_trace.py" 50000 > one.trace
/usr/bin/python3 "$SOURCE/tests/cmtreplay/make_threads.py" 50000 16 > several.trace
for trace in one several; do
  for how in --prepared --stream; do
    cmtreplay $how --alloc=null --runs=1 --json $trace.trace > null.json 2> words
    /usr/bin/python3 - << 'END'
import json
with open("null.json") as file:
    report = json.load(file)
for result in report["allocators"] + [report["baseline"]]:
    assert result["peak_resident_bytes"] <= 64 * 1024, result["peak_resident_bytes"]
    assert len(result["marks"]) == 100
    for mark in result["marks"]:
        assert mark["resident_bytes"] <= 64 * 1024, mark
    assert result["library"] is None
assert report["trace"]["peak_live_bytes"] > 1 << 20
END
  done
done
