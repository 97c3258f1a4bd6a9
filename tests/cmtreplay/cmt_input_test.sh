# A .cmt replays as its text does. A cut one is replayed up to the cut. A damaged one is refused, with the offset.
/usr/bin/python3 "$SOURCE/tests/cmtreplay/make_trace.py" 30000 5 > t.trace
trace2cmt -o t.cmt t.trace
live() {
  cmtreplay --alloc=null --runs=1 --json "$1" 2> words | /usr/bin/python3 -c '
import json, sys
report = json.load(sys.stdin)
print(report["trace"]["format"], report["trace"]["peak_live_bytes_event"])
for mark in report["baseline"]["marks"]:
    print(mark["event"], mark["live_bytes"], mark["live_blocks"])'
}
live t.trace > text.marks
live t.cmt > cmt.marks
head -1 cmt.marks | grep -q '^cmt '
cmp <(sed 1s/text// text.marks) <(sed 1s/cmt// cmt.marks)
live - < t.cmt | cmp - cmt.marks

head -c $(($(stat -c %s t.cmt) - 20)) t.cmt > cut.cmt
live cut.cmt > cut.marks
grep -q '^cmtreplay: cut.cmt: breaks off before its end; the whole part is replayed' words

# A changed byte in the middle is found by the checksum.
cp t.cmt damaged.cmt
printf '\252\125\252\125' | dd of=damaged.cmt bs=1 seek=$(($(stat -c %s t.cmt) / 2)) conv=notrunc status=none
status=0
cmtreplay --alloc=null --runs=1 damaged.cmt > out 2> words || status=$?
test $status = 1
test ! -s out
grep -q '^cmtreplay: damaged.cmt: offset 0x[0-9a-f]*: ' words
