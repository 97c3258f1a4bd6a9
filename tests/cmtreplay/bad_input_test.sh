# A trace that cannot be read is reported with its name and position. A trace that is cut off is replayed up to the cut.
status=0
cmtreplay missing.cmt > out 2> words || status=$?
test $status = 1
test "$(cat words)" = 'cmtreplay: missing.cmt: No such file or directory'
test ! -s out

status=0
cmtreplay . > out 2> words || status=$?
test $status = 1
test "$(cat words)" = 'cmtreplay: .: the folder has no .cmt and no .trace'

printf '#cmt text=1\nmalloc(8) = 1000<1>\n' > cut.trace
cmtreplay --alloc=null --runs=1 cut.trace > table 2> words
grep -q '^cut.trace: 1 event,' table
grep -qx 'cmtreplay: cut.trace: breaks off before its end; the whole part is replayed' words

printf 'malloc(8) = 1000<1>\nsurprise\nfree(<1>)\n' > defect.trace
cmtreplay --alloc=null --runs=1 defect.trace > table 2> words
grep -q '^defect.trace: 2 events' table
grep -qx 'cmtreplay: defect.trace:2: expected a call, as in malloc(8): surprise' words
grep -qx 'cmtreplay: defect.trace: 1 defect in the trace' words
cmtreplay --alloc=null --runs=1 - < defect.trace > table 2> words
grep -qx 'cmtreplay: standard input: 1 defect in the trace' words
grep -q '^standard input: 2 events' table

# A trace without calls is no error, and has no time for a call.
cmtreplay --runs=1 --alloc=null /dev/null > table 2> words
grep -qx 'cmtreplay: /dev/null: the trace is empty: there is nothing to replay' words
grep -q '^null  *-  *-  *-  *-  *-  ' table
printf 'hello\nworld\n' > hello.txt
status=0
cmtreplay --runs=1 --alloc=null hello.txt > table 2> words || status=$?
test $status = 1
grep -qx 'cmtreplay: hello.txt:1: expected a call, as in malloc(8): hello (no line of this input is understood)' words
cmtreplay --runs=1 --json /dev/null > empty.json 2> words
/usr/bin/python3 -c '
import json
report = json.load(open("empty.json"))
assert report["trace"]["events"] == 0 and report["allocators"][0]["ns_per_call"] is None
assert report["allocators"][0]["marks"] == []'

status=0
cmtreplay --runs=1 --alloc=null defect.trace > /dev/full 2> words || status=$?
test $status = 1
grep -qx 'cmtreplay: writing: No space left on device' words
