# A pipe is copied to a file without a name, so that it can be read several times. The marks are the same, streamed or
# prepared.
/usr/bin/python3 "$SOURCE/tests/cmtreplay/make_trace.py" 20000 11 > t.trace
mkdir temporary
facts() { /usr/bin/python3 -c '
import json, sys
report = json.load(sys.stdin)
print(report["trace"]["peak_live_bytes_event"])
for mark in report["baseline"]["marks"]:
    print(mark["event"], mark["live_bytes"], mark["live_blocks"])'; }
cmtreplay --prepared --alloc=null --runs=1 --json t.trace 2> words | facts > whole
cat t.trace | TMPDIR=$PWD/temporary cmtreplay --stream --alloc=null --runs=2 --json 2> words | facts | cmp - whole
test -z "$(ls -A temporary)"
