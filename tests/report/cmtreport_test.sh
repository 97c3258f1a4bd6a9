# cmtreport: one trace and several, with stacks and without, what other tools have said, and input that is wrong.

failed=0
complain() { echo "$*" >&2; failed=1; }

# number FILE KEY: the first number of that key.
number() { sed -n "s/^ *\"$2\": \([0-9]*\),*$/\1/p" "$1" | head -n 1; }
# expect FILE KEY VALUE
expect() { [ "$(number "$1" "$2")" = "$3" ] || complain "$1: $2 is $(number "$1" "$2"), not $3"; }

# A program that keeps a block of 100 bytes from each of 2,000 turns (one function), and frees others at once (another).
{
  echo '#cmt text=1'
  echo '#cmt program=leaky'
  echo '#module 1 path=/bin/leaky begin=1000 end=9000 bias=0'
  echo '#frame 1 module=1 address=1000'
  echo '#frame 2 module=1 address=2000'
  echo '#name 1 function="int keep<a, b>(char (*)(int))"'
  echo '#name 2 function=drop'
  echo '#node 1 parent=0 frame=1'
  echo '#node 2 parent=0 frame=2'
  awk 'BEGIN { for (i = 1; i <= 2000; ++i) {
    printf "malloc(100) = %x<%d> stack=1\n", 4096 * i, 2 * i
    printf "malloc(50) = %x<%d> stack=2\nfree(%x<%d>)\n", 4096 * i + 512, 2 * i + 1, 4096 * i + 512, 2 * i + 1 } }'
  echo '#cmt end=complete'
} >leaky.trace
trace2cmt <leaky.trace >leaky.cmt || complain "trace2cmt: $?"
cmtreport leaky.cmt >text 2>err || complain "leaky.cmt: $(cat err)"
grep -q '^ *1\. keep<a, b> leaks steadily: 17[0-9] KiB in 1,[78][0-9]* blocks' text || complain "the leak is not first: $(cat text)"
grep -q 'drop: 50.0 % of all allocations (2,000 of 4,000) are temporary' text || complain "no temporary blocks: $(cat text)"
awk 'length($0) > 80 { exit 1 }' text || complain "a line is longer than 80 columns"
cmtreport --json leaky.cmt >json || complain "--json: $?"
expect json events 6000
expect json allocated_bytes 300000
expect json end_live_bytes 200000
grep -q '"kind": "leak"' json || complain "no leak in the JSON"

# Focus, and functions that are taken out.
cmtreport --focus=drop leaky.cmt >text && ! grep -q leaks text || complain "--focus=drop: $(cat text)"
cmtreport --json --hide=keep leaky.cmt >hidden && ! grep -q '"int keep' hidden || complain "--hide=keep"

# Two processes are added up; a function is one in both. Without clocks the axis is of shares.
cmtreport --json leaky.cmt leaky.trace >both || complain "two traces: $?"
expect both events 12000
expect both end_live_bytes 400000
grep -q '"axis": "share"' both || complain "two traces: $(grep '"axis"' both)"
[ "$(grep -c '"name": "leaky' both)" = 2 ] || complain "two traces: $(grep '"name"' both)"
{ echo '#cmt text=1'; echo '#cmt start_monotonic_ns=5000'; echo 'malloc(8) = 1000<1> time=1000'; echo '#cmt end=complete'; } >early.trace
{ echo '#cmt text=1'; echo '#cmt start_monotonic_ns=90000'; echo 'malloc(8) = 1000<1> time=9000'; echo '#cmt end=complete'; } >late.trace
cmtreport --json early.trace late.trace >clocks || complain "two clocks: $?"
grep -q '"axis": "time"' clocks || complain "two clocks: $(grep '"axis"' clocks)"
expect clocks duration_ns 94000

# The page has the JSON and the other tools' reports.
printf '{"schema": "cmt.replay/1", "": 1, "allocators": [{"name": "</script><b>", "null": null, "t": true, "x": 1.5}]}' >replay.json
printf '{"schema": "cmt.watch/1", "samples": []}' >watch.json
cmtreport -o page.html --json --replay=replay.json --watch=watch.json leaky.cmt >json 2>err || complain "-o: $(cat err)"
grep -q '"samples": \[\]' json && grep -q '"x": 1.5' json || complain "the other reports are not in the JSON"
grep -q 'id="report"' page.html || complain "the page has no report"
! grep -q '</script><b>' page.html || complain "a name ends a script"

# refused STATUS MESSAGE ARGUMENT...
refused() {
  local expected=$1 message=$2 status=0; shift 2
  cmtreport "$@" >out 2>err </dev/null || status=$?
  [ "$status" = "$expected" ] && [ ! -s out ] && grep -qF -- "$message" err || complain "$*: $status: $(cat out err)"
}
refused 2 'of several traces none can be standard input' leaky.cmt -
refused 2 '--focus' --focus='(' leaky.cmt
refused 1 'not a report of cmtreplay --json' --replay=watch.json leaky.cmt
refused 1 'not a report of overhead --json' --overhead=watch.json leaky.cmt
refused 2 '--overhead is about one trace' --overhead=watch.json leaky.cmt leaky.cmt
refused 1 'not a report of cmtwatch' --watch=replay.json leaky.cmt
refused 1 'no JSON' --watch=leaky.trace leaky.cmt
refused 1 'No such file' --replay=missing.json leaky.cmt
refused 1 'No such file' -o missing/page.html leaky.cmt
refused 1 'No such file' leaky.cmt missing.cmt
printf '{"schema": "cmt.recording/1", "columns": 5}' >broken.json
refused 1 'not an exported recording' --watch=broken.json leaky.cmt
perl -e 'print "[" x 100000' >deep.json
refused 1 'too deep' --watch=deep.json leaky.cmt
printf 'SQLite format 3\000' >watch.db
refused 1 'cmtwatch export --json' --watch=watch.db leaky.cmt
head -c $(($(wc -c <leaky.cmt) / 2)) leaky.cmt >short.cmt
cmtreport short.cmt >text 2>err || complain "a trace that breaks off: $(cat err)"
grep -q 'breaks off' text || complain "a trace that breaks off: $(cat text)"
: >empty.trace
cmtreport empty.trace >text 2>err || complain "an empty trace: $(cat err)"
grep -q 'nothing stands out' text || complain "an empty trace: $(cat text)"
exit $failed
