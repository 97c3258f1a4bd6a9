# Operations that do not stay in memory go to a temporary file without a name, in TMPDIR. If that cannot be written, each
# run plans them again. The replay is the same.
/usr/bin/python3 "$SOURCE/tests/cmtreplay/make_threads.py" 20000 3 > t.trace
mkdir temporary
facts() { /usr/bin/python3 -c '
import json, sys
report = json.load(sys.stdin)
print(report["mode"]["operations"], file=open("mode", "w"))
print(report["trace"])
for mark in report["allocators"][0]["marks"]:
    print(mark["event"], mark["live_bytes"], mark["live_blocks"])'; }
cmtreplay --prepared --alloc=libc --runs=1 --json t.trace 2> words | facts > whole
grep -qx prepared mode
TMPDIR=$PWD/temporary cmtreplay --stream --alloc=libc --runs=2 --json t.trace 2> words | facts | cmp - whole
grep -qx spooled mode
! grep temporary words
test -z "$(ls -A temporary)"
TMPDIR=$PWD/nowhere cmtreplay --stream --alloc=libc --runs=2 --json t.trace 2> words | facts | cmp - whole
grep -qx streamed mode
grep -qx "cmtreplay: t.trace: a temporary file in $PWD/nowhere: No such file or directory: the trace is planned again in each run" words
