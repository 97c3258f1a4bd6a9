# Checks that cmtreport reads a .cmt, which a thread of its own decodes: whole, cut off and damaged; and that it refuses an
# empty standard input.

failed=0
complain() { echo "$*" >&2; failed=1; }

awk 'BEGIN { for (i = 1; i <= 3000; ++i) printf "malloc(%d) = %x<%d>\nfree(%x<%d>)\n", i % 99, 4096 * i, i, 4096 * i, i }' >app.trace
trace2cmt <app.trace >app.cmt || complain "trace2cmt: $?"
cmtreport --json app.trace >text.json || complain "app.trace: $?"
cmtreport --json app.cmt >json || complain "app.cmt: $?"
same() { sed '/"\(name\|title\)": "app/d; /"is_known"/d' "$1"; }
[ "$(same json)" = "$(same text.json)" ] || complain "text and .cmt differ: $(diff text.json json)"

# A thread of its own reads a .cmt. Its errors are reported like all others.
size=$(wc -c <app.cmt)
head -c "$((size - 20))" app.cmt >cut.cmt
cmtreport --json cut.cmt >json 2>err || complain "cut.cmt: $?"
[ "$(cat err)" = "cmtreport: cut.cmt: breaks off before its end" ] || complain "cut.cmt: $(cat err)"
grep -q '"events": 6000' json || complain "cut.cmt: $(grep '"events"' json)"
cmtreport --json <cut.cmt >json 2>err && [ "$(cat err)" = "cmtreport: standard input: breaks off before its end" ] || complain "cut: $(cat err)"
# The damage is in the core stream, which every reader needs.
{ head -c "$((size / 4))" app.cmt; printf '\377\377\377\377'; tail -c +"$((size / 4 + 5))" app.cmt; } >damaged.cmt
cmtreport damaged.cmt >text 2>err && complain "damaged.cmt: exit 0"
grep -q '^cmtreport: damaged.cmt: offset 0x' err || complain "damaged.cmt: $(cat err)"
printf '' | cmtreport >text 2>err && complain "empty standard input: exit 0"
[ "$(cat err)" = "cmtreport: standard input: the trace is empty" ] || complain "empty standard input: $(cat err)"

exit $failed
