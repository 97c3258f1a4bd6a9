# Checks cmtreport with one trace and several, with stacks and without, and with the reports of other tools. It refuses
# wrong input.

failed=0
complain() { echo "$*" >&2; failed=1; }

# number FILE KEY: prints the first number of that key.
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
grep -qx ' 1\. 17[0-9] KiB  steady leak in keep<>' text && grep -q '^    keep<> leaks steadily: 17[0-9] KiB in 1,[78][0-9]* blocks' text || complain "the leak is not first: $(cat text)"
grep -q 'drop: 50.0 % of all allocations (2,000 of 4,000) are temporary' text || complain "no temporary blocks: $(cat text)"
awk 'length($0) > 80 { exit 1 }' text || complain "a line is longer than 80 columns"
cmtreport --json leaky.cmt >json || complain "--json: $?"
expect json events 6000
expect json allocated_bytes 300000
expect json end_live_bytes 200000
jq -e '.findings[0] | .kind == "leak" and .urgent and .headline == "steady leak in keep<>" and (.figure | endswith(" KiB"))' json >out || complain "no leak in the JSON: $(jq -c '.findings[0]' json)"
jq -e '[.findings[] | select(.urgent) | .kind] == ["leak"]' json >out || complain "more is urgent: $(jq -c '[.findings[] | select(.urgent) | .kind]' json)"
! command -v script >out || script -qc 'stty cols 80 rows 24; cmtreport leaky.cmt' /dev/null >terminal && [ "$(wc -l <terminal)" -le 23 ] || complain "more than a screen: $(cat terminal)"

# One function resizes its block three times, another one each of its blocks once.
{
  sed -n '1,/^#node 2/p' leaky.trace
  awk 'BEGIN { for (i = 0; i < 200; ++i) {
    print "malloc(8) = 1000 stack=1\nrealloc(1000, 16) = 1000 stack=1\nrealloc(1000, 32) = 1000 stack=1\nrealloc(1000, 64) = 1000 stack=1\nfree(1000)"
    print "malloc(64) = 2000 stack=2\nrealloc(2000, 8) = 2000 stack=2\nfree(2000)" } }'
  echo '#cmt end=complete'
} >chains.trace
cmtreport --json chains.trace >json && jq -e '[.findings[] | select(.kind == "reallocated") | [.figure, .numbers.blocks]] == [["50.0 %", 600]]' json >out ||
  complain "chains of reallocs: $(jq -c .findings json)"

# A program keeps one small block on each page that a phase has filled.
{
  sed -n '1,/^#node 2/p' leaky.trace
  echo 'mark("load")'
  awk 'BEGIN { for (i = 0; i < 6400; ++i) printf "malloc(64) = %x<%d> stack=%d\n", 65536 + 64 * i, i + 1, i % 64 == 5 ? 1 : 2
    print "mark(\"serve\")"
    for (i = 0; i < 6400; ++i) if (i % 64 != 5) printf "free(%x<%d>)\n", 65536 + 64 * i, i + 1
    for (i = 6401; i < 8000; ++i) printf "malloc(64) = %x<%d> stack=2\nfree(%x<%d>)\n", 65536 + 64 * i, i, 65536 + 64 * i, i }'
  echo '#cmt end=complete'
} >pins.trace
cmtreport --pages pins.trace >text 2>err || complain "pins.trace: $(cat err)"
tr -s ' \n' ' ' <text >line
grep -q ' 1. 39[0-4] KiB old blocks keep their pages, in keep<> 100.0 % of what old blocks pin on their pages (39[0-4] KiB at event 1[0-9,]*) was allocated by keep<> during load: 100 old blocks, 6.[0-9]* KiB' line || complain "who pins the pages: $(cat text)"
for jobs in 1 3; do
  SOURCE_DATE_EPOCH=1 cmtreport --jobs=$jobs --json -o pins$jobs.html leaky.cmt pins.trace >pins$jobs.json || complain "--jobs=$jobs: $?"
done
cmp pins1.json pins3.json && cmp pins1.html pins3.html || complain "the number of threads shows"
cp pins.trace "it's a.trace" && SOURCE_DATE_EPOCH=86400 cmtreport --strict --focus=keep -o made.html "it's a.trace" || complain "a page: $?"
sed -n '/id="maker"/,/<\/script>/p' made.html | tr -d '\n' | tr -s ' ' >maker
grep -qF '"version": "'"$(cmtreport --version | cut -d' ' -f2)"'", "time": "1970-01-02T00:00:00Z", "command": "cmtreport --strict --focus=keep '"'it'" maker &&
  grep -qF "''s a.trace'\"" maker || complain "who made a page: $(cat maker)"
cmtreport --pages --json pins.trace >json || complain "pins.trace: $?"
tr -d ' \n' <json | grep -q '"by_function":\[\["intkeep<a,b>(char(\*)(int))",100,6400,409600,403200,409600\]' || complain "no holders by function"
{ echo '#cmt text=1'; awk 'BEGIN { for (i = 1; i <= 3000; ++i) printf "malloc(3500) = %x<%d>\n", 4096 * i, i
  for (i = 3001; i <= 9000; ++i) printf "malloc(3500) = %x<%d>\nfree(%x<%d>)\n", 4096 * i, i, 4096 * i, i }'
  echo '#cmt end=complete'; } >aligned.trace
cmtreport --pages aligned.trace >text 2>err && ! grep -q ' pin' text || complain "pins of blocks that fill their pages: $(cat text err)"
sed 's/stack=1$/stack=0/' pins.trace >unknown.trace
cmtreport --pages unknown.trace >text 2>err || complain "unknown.trace: $(cat err)"
tr -s ' \n' ' ' <text | grep -q 'is of blocks whose stack is not known' || complain "pins of unknown stacks: $(cat text)"
cmtreport --json pins.trace >json || complain "without --pages: $?"
! grep -q '"pages"\|old blocks pin' json || complain "pages without --pages"
overhead --json pins.trace >overhead.json
cmtreport --pages --overhead=overhead.json --json pins.trace >json && grep -q '"by_age"' json && grep -q '"by_function"' json || complain "both kinds of holders"

# Two functions of one short name are two in the report. Their blocks are short-lived, but not temporary.
{
  sed -n '1,/^#node 2/p' leaky.trace | sed 's/"int keep.*"/"int f<a>(int)"/; s/function=drop/function="int f<b>(int)"/'
  awk 'BEGIN { for (i = 1; i <= 2000; ++i) {
    printf "malloc(100) = %x<%d> stack=1\nmalloc(50) = %x<%d> stack=2\n", 4096 * i, 2 * i, 4096 * i + 512, 2 * i + 1
    if (i > 9) printf "free(%x<%d>)\nfree(%x<%d>)\n", 4096 * (i - 9), 2 * (i - 9), 4096 * (i - 9) + 512, 2 * (i - 9) + 1 } }'
  echo '#cmt end=complete'
} >short.trace
cmtreport short.trace >text 2>err || complain "short.trace: $(cat err)"
tr -s ' \n' ' ' <text >line
grep -q 'int f<a>(int): 49.8 % of all allocations (1,991 of 4,000) are short-lived: freed within 256 events' line &&
  grep -q 'int f<b>(int): ' line || complain "short-lived blocks: $(cat text)"
cmtreport --json short.trace | jq -c '.frames.short_name' >names && ! grep -q f names || complain "a short name of two functions: $(cat names)"
cmtreport --json leaky.cmt | jq -c '.frames.short_name' | grep -q '"keep<>"' || complain "no short name"

# --focus and --hide choose functions.
cmtreport --focus=drop leaky.cmt >text && ! grep -q leaks text || complain "--focus=drop: $(cat text)"
cmtreport --json --hide=keep leaky.cmt >hidden && ! grep -q '"int keep' hidden || complain "--hide=keep"

# One block with most of the bytes is named. Blocks of a library from before main, and the arenas of Perl, are no leak.
{
  echo '#cmt text=1'
  echo '#cmt program=app'
  echo '#module 1 path=/bin/app begin=1000 end=9000 bias=0'
  echo '#module 2 path=/lib/ld-linux-x86-64.so.2 begin=10000 end=90000 bias=0'
  echo '#module 3 path=/lib/libstdc++.so.6 begin=100000 end=900000 bias=0'
  for frame in 1:2:_dl_init 2:2:call_init 3:3:pool 4:1:main 5:1:few 6:1:Perl_more_sv 7:3:dlopen_init; do
    IFS=: read -r number module name <<<"$frame"
    echo "#frame $number module=$module address=${number}000"
    echo "#name $number function=$name"
  done
  echo '#node 1 parent=0 frame=0'
  for node in 2:1:1 3:2:2 4:3:3 5:0:4 6:5:5 7:5:6 8:5:2 9:8:7; do
    IFS=: read -r number parent frame <<<"$node"
    echo "#node $number parent=$parent frame=$frame"
  done
  echo 'malloc(72704) = 100000<1> stack=4'
  echo 'malloc(90000) = 200000<2> stack=6'
  echo 'malloc(1000) = 300000<3> stack=6'
  echo 'malloc(50000) = 380000<4> stack=9'
  awk 'BEGIN { for (i = 1; i <= 2000; ++i) {
    printf "malloc(40) = %x<%d> stack=7\n", 16777216 + 4096 * i, 2 * i + 9
    printf "malloc(50) = %x<%d> stack=5\nfree(%x<%d>)\n", 16777216 + 4096 * i + 512, 2 * i + 10, 16777216 + 4096 * i + 512, 2 * i + 10 } }'
  echo '#cmt end=complete'
} >stays.trace
cmtreport stays.trace >text 2>err && cmtreport --json stays.trace >json || complain "stays.trace: $(cat err)"
tr -s ' \n' ' ' <text >line
grep -q 'few: 88.9 KiB in 2 blocks (87.9 KiB of these in one block), allocated up to' line || complain "one large block: $(cat text)"
jq -e '[.findings[] | select(.function == "few" and .kind == "live_at_end") | .numbers.largest_block_bytes] == [90000]' json >out ||
  complain "the largest block in the JSON: $(jq -c .findings json)"
jq -e '[.findings[] | select(.kind == "leak")] == [] and ([.findings[] | select(.function == "pool") | .kind] == ["peak"]) and
  (.findings[-1] | .function == "pool" and (.text | contains("made it before main"))) and
  (.findings | any(.function == "dlopen_init" and .kind == "live_at_end") and
    any(.function == "Perl_more_sv" and (.kind == "growth" or .kind == "live_at_end") and (.text | contains("keeps these blocks for later values"))))' json >out ||
  complain "what stays is a leak: $(jq -c '.findings[] | [.kind, .function, .text]' json)"

# A program without symbols that is linked with libstdc++ statically has its pool for exceptions, by its size.
sed 's|ld-linux-x86-64.so.2|libc.so.6|; /^#name 3 /d; s/^#frame 3 module=3/#frame 3 module=1/' stays.trace >static.trace
for bytes in 72704 73728 72720; do
  sed "s/malloc(72704)/malloc($bytes)/" static.trace | cmtreport --json - >json 2>err || complain "static.trace: $(cat err)"
  jq -e --argjson pool $((bytes != 72720)) '[.findings[] | select(.function | contains("+0x")) | .kind] as $kinds |
    if $pool == 1 then $kinds == ["peak"] and (.findings[-1].text | contains("made it before main"))
    else ($kinds | index("live_at_end")) != null end' json >out ||
    complain "a pool of $bytes bytes without a name: $(jq -c '.findings[] | [.kind, .function, .text]' json)"
done

# Findings name the code of the user: of a script before the program's, and that before a library's. The functions that
# start a program are in no tree. Few frees of unknown blocks are no finding, and the command is the title.
{
  echo '#cmt text=1'
  echo '#cmt program=python3.12'
  echo '#cmt command="python3.12 rows.py"'
  echo '#cmt start_monotonic_ns=1000'
  echo '#module 1 path=/usr/bin/python3.12 begin=1000 end=9000 bias=0'
  echo '#module 2 path=/lib/libc.so.6 begin=10000 end=90000 bias=0'
  for frame in 1:1:_start 2:2:__libc_start_call_main 3:1:Py_RunMain 4:0:py::load:/app/rows.py 5:0:py::decode:/usr/lib/python3.12/json/decoder.py 6:1:PyUnicode_New 7:1:_PyObject_Malloc; do
    IFS=: read -r number module name <<<"$frame"
    echo "#frame $number module=$module address=${number}000"
    echo "#name $number function=$name"
    echo "#node $number parent=$((number - 1)) frame=$number"
  done
  printf '#node 8 parent=0 frame=0\n#node 9 parent=8 frame=3\n'
  awk 'BEGIN { for (i = 1; i <= 20000; ++i) printf "malloc(90) = %x<%d> stack=%d time=%d\n", 4096 * i, i + 1, i % 10 ? 7 : 9, i * 1000 }'
  echo 'free(1001<1>) time=20001000'
  echo '#cmt end=complete'
} >rows.trace
sed 's/command=.*/command=later/; s/^#cmt start_mono.*/#cmt start_monotonic_ns=9000/' rows.trace >later.trace
cmtreport --json rows.trace >json 2>err || complain "rows.trace: $(cat err)"
jq -e '.findings[0] | .headline == "steady leak in load (rows.py), through PyUnicode_New" and .function == "PyUnicode_New"' json >out || complain "the user's own code: $(jq -c '.findings[0]' json)"
jq -e '[.findings[] | select(.kind == "lost")] == [] and .lost.unknown_ends == 1 and .lost.cut_stack_bytes == 180000' json >out || complain "small losses: $(jq -c .lost json)"
jq -e '.frames.function | index("_start") == null and index("__libc_start_call_main") == null and index("[cut: 10.0 % of all allocated bytes lack their outer callers]") != null' json >out || complain "frames: $(jq -c .frames.function json)"
grep -v '^#name 1 ' rows.trace >stripped.trace
cmtreport --json stripped.trace | jq -e '.frames.function | index("__libc_start_call_main") == null and all(startswith("python3.12+0x") | not)' >out || complain "the start of a program without symbols is in the tree"
cmtreport rows.trace | grep -q '^  1 free of unknown blocks, fewer than 1 in 10,000 events$' || complain "no line about a free"
# The bound of that rule: 1 event of 20,000 is small, 1 of 19,999 is a finding in red, with no line in the details.
for left_out in 1 2; do
  grep -vE "^malloc\(90\) = [0-9a-f]*<[2-$((left_out + 1))]> " rows.trace >bound.trace
  cmtreport --json bound.trace >json && cmtreport bound.trace >text || complain "bound.trace: $?"
  events=$((20001 - left_out)) is_finding=$([ $left_out = 1 ] && echo false || echo true)
  jq -e --argjson events $events --argjson is $is_finding '.events == $events and .lost.unknown_ends == 1 and
    (.findings | any(.kind == "lost" and .part == "memory") == $is and any(.kind == "lost" and .urgent) == $is)' json >out ||
    complain "$events events: $(jq -c '[.events, .lost, .findings[].headline]' json)"
  grep -q '^  1 free of unknown blocks, fewer' text && is_line=true || is_line=false
  [ $is_line != $is_finding ] || complain "$events events: $(cat text)"
done
cmtreport later.trace rows.trace 2>err | head -n 1 | grep -q '^python3.12 rows.py: 2 processes, 40,002 events' || complain "the title of two processes"
started() { printf '#cmt text=1\n#cmt program=%s\n#cmt pid=%s\n#cmt start=2026-01-01T00:00:1%sZ\nmalloc(8) = 1000<1>\n#cmt end=complete\n' "$1" "$2" "$3" >"$1.trace"; }
started cc1plus 12 0; started g++ 11 0; started as 9 1
cmtreport --json as.trace cc1plus.trace g++.trace 2>err | jq -e '.program == "g++" and .title == "g++"' >out || complain "the title of processes that began in the same second"
# Processes that end one after the other leave memory, which is no leak.
for number in 10 11 12 13 14 15 16 17 18 19 20 21; do
  sed "s/^#cmt start_mono.*/#cmt start_monotonic_ns=$((number * 21000000))/" rows.trace >"step$number.trace"
done
cmtreport --json step??.trace 2>err | jq -e '[.findings[] | select(.kind == "leak")] == []' >out || complain "ended processes leak"
cmtreport --json later.trace rows.trace 2>err | jq -e '.title == "python3.12 rows.py" and .command == .title and .name == "2 processes"' >out || complain "the title in JSON"

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

# Two of three processes run one after the other within one interval: they have nothing live together.
apart() { printf '#cmt text=1\n#cmt start_monotonic_ns=%s\nmalloc(1000000) = 1000<1> time=1000000\nmalloc(1) = f00000<2> time=10000000\n#cmt end=complete\n' "$2" >"$1"; }
apart first.trace 1000000000; apart second.trace 1020000000; apart third.trace 101000000000
cmtreport --json first.trace second.trace third.trace >apart 2>err || complain "processes that run one after the other: $(cat err)"
jq -e '.peak.live_bytes == 1000001 and (.moments.live_bytes | max) <= 1000001' apart >out || complain "the peak of processes that run one after the other: $(jq .peak.live_bytes apart)"

# A process keeps its blocks until its end, where the trace states how long it was recorded.
sed 's/^#cmt end/#stretch elapsed=30000000 ran=1 waited=0 held=0 busy=1\n&/' first.trace >idle.trace
cmtreport --json idle.trace second.trace >apart 2>err || complain "a process that idles: $(cat err)"
jq -e '.peak.live_bytes == 2000002 and .duration_ns == 30000000' apart >out || complain "a process that idles: $(jq -c '.peak, .duration_ns' apart)"
! grep -q 'ran at the same time' err || complain "a process that idles: $(cat err)"
# A program that loads a table and then waits does not leak.
{ printf '#cmt text=1\n'; awk 'BEGIN { for (i = 1; i <= 20000; ++i) printf "malloc(90) = %x<%d> time=%d\n", 4096 * i, i, i * 100000 }'; } >table.trace
for waits in 0 800000000 2000000000; do
  { cat table.trace; echo "#stretch elapsed=$((2000000000 + waits)) ran=1 waited=0 held=0 busy=1"; echo '#cmt end=complete'; } >waits.trace
  cmtreport --json waits.trace | jq -r '.findings[0].kind, .processes[0].recorded_ns' >kind
  [ "$(tr '\n' ' ' <kind)" = "$([ $waits = 2000000000 ] && echo live_at_end || echo leak) $((2000000000 + waits)) " ] || complain "a table, and $waits ns: $(cat kind)"
done
cmtreport waits.trace | grep -q '20,000 events, 2.00 s of 4.00 s' || complain "a table: $(cmtreport waits.trace | head -1)"

# Two traces have no common clock if a start is beyond the axis, or if their clocks disagree (another boot or host).
#
# start NAME MONOTONIC WALL: writes a trace of one event.
start() { printf '#cmt text=1\n#cmt start=%s\n#cmt start_monotonic_ns=%s\nmalloc(8) = 1000<1> time=1000\n#cmt end=complete\n' "$3" "$2" >"$1"; }
start now.trace 5000000000 2026-01-01T00:00:10Z
start soon.trace 9000000000 2026-01-01T00:00:14Z
start beyond.trace 18446744073709551615 2026-01-01T00:00:14Z
start elsewhere.trace 9000000000 2026-03-01T00:00:14Z
cmtreport --json now.trace soon.trace >json 2>err || complain "two starts: $?"
grep -q '"axis": "time"' json && grep -q 'ran at the same time' err || complain "two starts: $(grep '"axis"' json; cat err)"
for other in beyond.trace elsewhere.trace; do
  cmtreport --json now.trace $other >json 2>err || complain "$other: $?"
  grep -q '"axis": "share"' json && grep -q 'no clock in common' err || complain "$other: $(grep '"axis"' json; cat err)"
done

# The program is that of the process that started first, whatever the order of files; its command is the title.
started() { printf '#cmt text=1\n#cmt program=%s\n#cmt command="%s <b>"\n#cmt pid=%s\n#cmt start=2026-01-01T00:00:1%sZ\nmalloc(8) = 1000<1>\n#cmt end=complete\n' "$1" "$1" "$2" "$3" >"$1.trace"; }
started cc1plus 12 0; started g++ 11 0; started as 9 1
cmtreport --json -o build.html as.trace cc1plus.trace g++.trace >json 2>err || complain "a build: $?"
grep -q '^  "program": "g++",' json && grep -q '^  "command": "g++ <b>",' json && grep -q '<title>g++ &lt;b&gt;</title>' build.html || complain "a build: $(grep -o '<title>.*' build.html; head -n 6 json)"

# A short program that ends within a tick of its clock is shown by events, and one of which the clock says more by time.
for each in 0 1000; do
  { echo '#cmt text=1'; awk -v each=$each 'BEGIN { for (i = 1; i <= 200; ++i) printf "malloc(%d) = %x<%d> time=%d\n", i, 4096 * i, i, 5000 + each * i }'; echo '#cmt end=complete'; } >short.trace
  cmtreport --json short.trace >json || complain "a short program: $?"
  axis=$([ $each = 0 ] && echo events || echo time)
  grep -q "\"axis\": \"$axis\"" json && expect json end_live_bytes 20100 || complain "a short program: $(grep '"axis"' json)"
done
cmtreport --json - <short.trace >json && grep -q '"axis": "time"' json || complain "a short program from standard input"

# Leaks by time and by events.
#
# turns NAME BEGIN END TURNS LAST STEP LEAKS: checks a program that keeps a block in each turn between two times, and then
# is idle up to LAST. Times are in ms, and rise by STEP. LEAKS is the axis, and for each leak whether it is by events.
turns() {
  { sed -n '1,/^#node 2/p' leaky.trace
    awk -v begin="$2" -v end="$3" -v turns="$4" -v last="$5" -v step="$6" 'BEGIN { for (i = 1; i <= turns; ++i) {
      time = int((begin + (end - begin) * i / turns) / step) * step * 1e6
      printf "malloc(100) = %x<%d> time=%d stack=1\nmalloc(50) = %x<%d> time=%d stack=2\nfree(%x<%d>) time=%d\n", 4096 * i, 2 * i, time, 4096 * i + 512, 2 * i + 1, time, 4096 * i + 512, 2 * i + 1, time }
      for (time = end; time < last; time += 10) { ++i; printf "malloc(50) = %x<%d> time=%d stack=2\nfree(%x<%d>) time=%d\n", 4096 * i, 2 * i, time * 1e6, 4096 * i, 2 * i, time * 1e6 } }'
    echo '#cmt end=complete'; } >"$1.trace"
  cmtreport --json "$1.trace" >json || complain "$1.trace: $?"
  jq -c '[.axis, ([.findings[] | select(.kind == "leak") | .text | test(", by events: ")])]' json >out
  [ "$(cat out)" = "$7" ] || complain "$1: leaks: $(cat out), not $7"
}
turns serving 0 2000 4000 2000 1 '["time",[false]]'
jq -e 'all(.findings[] | select(.kind == "leak"); .headline | startswith("steady leak in "))' json >out || complain "a leak from the start: $(jq -c .findings json)"
turns starting 800 2000 4000 2000 1 '["time",[true]]'
jq -e 'any(.findings[]; .kind == "leak" and (.headline | startswith("steady leak, or a table that is filled late, in ")) and (.text | contains("it begins after 4")))' json >out || complain "a late leak: $(jq -c .findings json)"
turns brief 20 40 4000 40 8 '["events",[false]]'
turns loading 0 50 4000 2000 1 '["time",[]]'
turns filling 1900 2000 4000 2000 1 '["time",[]]'

# The peak of several processes is never below the peak of one. Each has much for a short time, at the same share.
{
  echo '#cmt text=1'
  awk 'BEGIN { for (i = 1; i <= 999; ++i) printf "malloc(10) = %x<%d>\n", 4096 * i, i
    print "malloc(9000000) = 1000000000<1000>"; print "free(1000000000<1000>)"
    for (i = 1; i <= 999; ++i) printf "free(%x<%d>)\n", 4096 * i, i }'
  echo '#cmt end=complete'
} >spike.trace
cmtreport --json spike.trace >json || complain "spike.trace: $?"
own=$(sed -n '/"peak": {/,$p' json | sed -n 's/^ *"live_bytes": \([0-9]*\),*$/\1/p' | head -n 1)
cmtreport --json spike.trace spike.trace >json 2>err || complain "spikes: $?"
both=$(sed -n '/"peak": {/,$p' json | sed -n 's/^ *"live_bytes": \([0-9]*\),*$/\1/p' | head -n 1)
[ "$own" = 9009990 ] && [ "$both" -ge "$own" ] || complain "the peak of two processes: $both, of one $own"
! grep -q '"kind": "burst"' json || complain "a burst of several processes"
cmtreport spike.trace spike.trace >text 2>err; grep -q 'peak at least 8.59 MiB' text || complain "peak of two: $(cat text)"

# Ends of blocks from before the trace do not count as defects, and defects do not count as such ends.
{ echo '#cmt text=1'; echo 'malloc(8) = 1000<5>'; echo 'free(1000<5>)'; echo 'free(1000<5>)'; echo 'free(2000<1>)'; echo '#cmt end=complete'; } >ends.trace
cmtreport --json ends.trace >json 2>err || complain "ends.trace: $?"
expect json unknown_ends 1
expect json defects 1
cmtreport ends.trace 2>err | tr -s ' \n' ' ' >text
grep -qF '1 free of an unknown block, made before the recording began or not recorded' text || complain "ends.trace: $(cat text)"
! grep -qE 'attach|fork' text || complain "an attach or a fork is blamed that nobody knows of"

# The page contains the JSON and the other tools' reports.
printf '{"schema": "cmt.replay/1", "": 1, "allocators": [{"name": "</script><b>", "null": null, "t": true, "x": 1.5}]}' >replay.json
printf '{"schema": "cmt.watch/1", "samples": []}' >watch.json
cmtreport -o page.html --json --replay=replay.json --watch=watch.json leaky.cmt >json 2>err || complain "-o: $(cat err)"
grep -q '"samples": \[\]' json && grep -q '"x": 1.5' json || complain "the other reports are not in the JSON"
grep -q 'id="report"' page.html || complain "the page has no report"
cp leaky.trace '<b>x&.trace'
cmtreport -o page.html '<b>x&.trace' || complain "a hostile name: $?"
grep -q '&lt;b' page.html && ! grep -q '<b>x' page.html || complain "the file's name is not escaped in the page"

# refused STATUS MESSAGE ARGUMENT...
refused() {
  local expected=$1 message=$2 status=0; shift 2
  cmtreport "$@" >out 2>err </dev/null || status=$?
  [ "$status" = "$expected" ] && [ ! -s out ] && grep -qF -- "$message" err || complain "$*: $status: $(cat out err)"
}
refused 2 'of several traces none can be standard input' leaky.cmt -
refused 2 'not a regular file' leaky.cmt <(cat leaky.cmt)
cp leaky.cmt ./-
refused 2 '--pages needs one trace that is a regular file' --pages
refused 2 '--pages needs one trace that is a regular file' --pages -
refused 2 '--pages needs one trace that is a regular file' --pages leaky.cmt leaky.cmt
refused 2 '--pages needs one trace that is a regular file' --pages <(cat leaky.cmt)
cmtreport - <pins.trace >text 2>err && grep -q 'peak 400 KiB' text || complain "standard input beside a file of the name -: $(cat text err)"
refused 2 'standard input can be read only once' --replay=- -
refused 2 'standard input can be read only once' --replay=- --watch=- leaky.cmt
refused 2 '--json' -o - --json leaky.cmt
refused 2 'name' -o '' leaky.cmt
refused 2 '--focus' --focus='(' leaky.cmt
for option in --focus --hide --skip; do
  refused 1 "early.trace: call stacks were not recorded (needed by $option)" $option=x early.trace
done
refused 1 'not a report of cmtreplay --json' --replay=watch.json leaky.cmt
refused 1 'not a report of overhead --json' --overhead=watch.json leaky.cmt
refused 1 'another trace: "pins.trace" of 15900 events, not leaky.cmt of 6000' --overhead=overhead.json leaky.cmt
printf '{"schema": "cmt.replay/1", "trace": {"file": "leaky.cmt", "events": 6001}}' >other.json
refused 1 'another trace: of 6001 events, not leaky.cmt of 6000' --replay=other.json leaky.cmt
refused 2 '--overhead is about one trace' --overhead=watch.json leaky.cmt leaky.cmt
refused 1 'not a recording or a report of cmtwatch' --watch=replay.json leaky.cmt
refused 1 'not valid JSON; expected a recording or a report of cmtwatch' --watch=leaky.trace leaky.cmt
refused 1 'sampled.cmt: a sampled trace cannot be added to others; give it alone' leaky.cmt "$SOURCE/format-spec/vectors/sampled.cmt"
refused 1 'No such file' --replay=missing.json leaky.cmt
refused 1 'No such file' -o missing/page.html leaky.cmt
refused 1 'No such file' leaky.cmt missing.cmt
printf '{"schema": "cmt.recording/1", "columns": 5}' >broken.json
refused 1 'not an exported recording' --watch=broken.json leaky.cmt
for bytes in -5 5.5 '"5"'; do
  echo '{"schema": "cmt.recording/1", "columns": {"samples": ["tick_id", "proportional_bytes", "resident_bytes"],
    "ticks": ["id", "begin_ns"]}, "ticks": [[1, 0]], "processes": [{"samples": [[1, null, '"$bytes"']]}]}' >negative.json
  refused 1 'negative.json: not an exported recording' --watch=negative.json leaky.cmt
done
sed 's/"5"/5/' negative.json >positive.json
cmtreport --json --watch=positive.json leaky.cmt >json 2>err || complain "positive.json: $(cat err)"
printf '{"schema": "cmt.watch/1", "x": 1e9999}' >large.json
refused 1 'large.json: ' --watch=large.json leaky.cmt
: >nothing.json
refused 1 'nothing.json: the file is empty' --watch=nothing.json leaky.cmt
perl -e 'print "[" x 100000' >deep.json
refused 1 'too deep' --watch=deep.json leaky.cmt
printf 'SQLite format 3\000' >watch.db
refused 1 'watch.db: not a recording of cmtwatch' --watch=watch.db leaky.cmt
refused 1 'cmtwatch export --json' --replay=watch.db leaky.cmt

# A recording itself gives the same report as its export. Another version, other tables and figures below 0 are refused.
cmtwatch record -o real.db -- sleep 0.3 >out 2>&1 || complain "cmtwatch record: $(cat out)"
cmtwatch export --json real.db >real.json
for from in real.db real.json; do cmtreport --json --watch=$from leaky.cmt | jq -c .watch >$from.out 2>err || complain "$from: $(cat err)"; done
cmp -s real.db.out real.json.out && jq -e '.bytes | length > 1 and max > 100000' real.db.out >out || complain "a recording is not its export: $(cat real.db.out)"
for pid in 4194304 $(jq '.processes[0].pid' real.json); do
  printf '#cmt text=1\n#cmt pid=%s\nmalloc(8) = 10<1>\n#cmt end=complete\n' "$pid" >watched.trace
  cmtreport --watch=real.db watched.trace >out 2>err || complain "process $pid: $(cat err)"
  [ "$(cat err)" = "$([ "$pid" != 4194304 ] || echo 'cmtreport: real.db: no recorded process has the id 4194304 of the trace: is the recording of another run?')" ] || complain "process $pid: $(cat err)"
done
# A report of the watch of another run.
printf '{"schema": "cmt.watch/1", "traced": {"traces": [{"pid": 77}]}}' >run.json
for pid in 78 77; do
  printf '#cmt text=1\n#cmt pid=%s\nmalloc(8) = 10<1>\n#cmt end=complete\n' "$pid" >watched.trace
  cmtreport --watch=run.json watched.trace >out 2>err || complain "watched $pid: $(cat err)"
  [ "$(grep -c 'run.json: no recorded process has the id 78 of the trace' err)" = $((pid - 77)) ] || complain "watched $pid: $(cat err)"
done
for odd in '{"traces": 5}' 5 '{"traces": [5]}' null; do
  printf '{"schema": "cmt.watch/1", "traced": %s}' "$odd" >run.json
  cmtreport --watch=run.json watched.trace >out 2>err || complain "traced: $odd: $(cat err)"
done
# A report of the watch at another time: the trace is from 1,000 s on, and takes 5 s.
printf '#cmt text=1\n#cmt start=1970-01-01T00:16:40Z\nmalloc(8) = 10<1> time=5000000000\n#cmt end=complete\n' >watched.trace
for times in '[{"wall_ns": 990000000000}, {"wall_ns": 997000000000}] 3.000_s_before_the_trace_began' \
  '[{"wall_ns": 990000000000}, {"wall_ns": 998000000000}] ' '[{"wall_ns": 1007000000000}] ' \
  '[{"wall_ns": 1008000000000}, {"wall_ns": 1009000000000}] 3.000_s_after_the_trace_ended' \
  '[{}] ' '[5] ' '5 ' '[] ' '[{"wall_ns": -9223372036854775808}] ' '[{"wall_ns": "x"}] '; do
  printf '{"schema": "cmt.watch/1", "samples": %s}' "${times% *}" >run.json
  cmtreport --watch=run.json watched.trace >out 2>err || complain "watched at $times: $(cat err)"
  said=${times##* }
  if [ -z "$said" ]; then ! grep -q 'another run' err; else grep -qx "cmtreport: run.json: was measured ${said//_/ }: is it of another run?" err; fi ||
    complain "watched at $times: $(cat err)"
done
# A trace that is given twice counts twice.
cmtreport pins.trace ./pins.trace >out 2>err && [ "$(grep -c ': is given more than once, and counts as often' err)" = 1 ] || complain "twice: $(cat err)"
# A mistyped focus.
for options in --focus=keep --focus=kep; do
  cmtreport $options pins.trace >out 2>err || complain "$options: $(cat err)"
  [ "$(grep -c 'no stack has a function, file, line or library that is asked for' err)" = "$([ $options = --focus=keep ] && echo 0 || echo 1)" ] || complain "$options: $(cat err)"
done
changed() { cp real.db changed.db && sqlite "$1" && refused 1 "$2" --watch=changed.db leaky.cmt; }
sqlite() { python3 -c 'import sqlite3, sys; c = sqlite3.connect("changed.db"); c.executescript(sys.argv[1]); c.commit()' "$1"; }
changed 'pragma user_version = 77' 'a recording of version 77, which this cmtreport does not know'
changed 'pragma application_id = 5' 'changed.db: not a recording of cmtwatch'
changed 'update process_sample set resident_bytes = -1, proportional_bytes = null' 'resident_bytes is -1 somewhere, which no machine has'
changed 'drop table process_sample; create view process_sample as select 1 tick_id, 2 proportional_bytes, 3 resident_bytes' 'changed.db: not a recording of cmtwatch'

# The parts that were recorded with --explain are added up over the processes, and the largest ones come first.
cp real.db changed.db
sqlite "delete from part_sample; delete from part; update process set pid = 4711; insert into process select 99, 4712,
  start_ticks, parent_pid, name_id, command, first_tick, last_tick from process limit 1;
  insert into part values (1, 'live', 'live in blocks', 0), (2, 'changed', 'changed while read', 0), (3, 'owned', '<b>', 1);
  insert into part_sample select tick.id, process.id, part.id, iif(part.id = 2, -50, 1000 * part.id + tick.id), null
  from tick, process, part where tick.id in (1, 2)"
cmtwatch export --json changed.db >changed.json
for from in changed.db changed.json; do
  cmtreport --json --watch=$from leaky.cmt | jq -c .watch >$from.out 2>err || complain "$from: $(cat err)"
done
cmp -s changed.db.out changed.json.out && jq -e '.parts == [{name: "<b>", bytes: [6002, 6004]},
  {name: "live in blocks", bytes: [2002, 2004]}] and .parts_time_ns == .time_ns[:2]' changed.db.out >out ||
  complain "parts: $(cat changed.db.out changed.json.out)"
sqlite 'update part_sample set bytes = 1 << 60' && refused 1 'bytes is 1152921504606846976 somewhere' --watch=changed.db leaky.cmt
sqlite 'drop table part_sample; drop table part' && cmtreport --json --watch=changed.db leaky.cmt | jq -e '.watch.parts == null' >out ||
  complain "a recording of 0.1.0: $(cat out)"
head -c $(($(wc -c <leaky.cmt) / 2)) leaky.cmt >short.cmt
cmtreport short.cmt >text 2>err || complain "a trace that breaks off: $(cat err)"
grep -q 'breaks off' text && ! grep -q leaks text || complain "a trace that breaks off: $(cat text)"
{ echo '#cmt text=1'; echo 'malloc(8) = 2000<2>'; echo 'free(1000<1>)'; echo '#cmt end=complete'; } >child.trace
cmtreport child.trace 2>/dev/null | tr -s ' \n' ' ' >text
grep -q ' 1 free of an unknown block, made before the recording began' text && ! grep -q ' 0 ' text ||
  complain "a block of the parent: $(cat text)"
sed 's/function=drop/function=my_malloc/' leaky.trace >wrapper.trace
cmtreport wrapper.trace >text && grep -qF -- "--skip='^my_malloc\$'" text || complain "a wrapper of malloc: $(cat text)"

# Functions that only hand memory on are charged to their callers, and themselves with --raw. The outermost is charged if
# a stack has no other.
{
  echo '#cmt text=1'
  echo '#module 1 path=/usr/bin/python3.11 begin=1000 end=9000 bias=0'
  for frame in 1:main 2:_PyObject_Malloc 3:xmalloc 4:malloc; do
    echo "#frame ${frame%:*} module=1 address=${frame%:*}000"
    echo "#name ${frame%:*} function=${frame#*:}"
  done
  printf '#node %d parent=%d frame=%d\n' 1 0 1  2 1 2  3 0 3  4 3 4
  awk 'BEGIN { for (i = 1; i <= 500; ++i) printf "malloc(300) = %x<%d> stack=2\nmalloc(100) = %x<%d> stack=4\n", 4096 * i, 2 * i, 4096 * i + 512, 2 * i + 1 }'
  echo '#cmt end=complete'
} >hand.trace
charged() { jq -r '[.findings[] | select(.kind == "live_at_end") | .function] | sort | join(" ")'; }
for expected in '|main xmalloc' '--raw|_PyObject_Malloc malloc' '--raw --skip=alloc|main xmalloc' '--skip=^main|main xmalloc'; do
  cmtreport --json ${expected%|*} hand.trace | charged >out
  [ "$(cat out)" = "${expected#*|}" ] || complain "charged with '${expected%|*}': $(cat out)"
  lifetimes --by=function --sort=live --json ${expected%|*} hand.trace |
    jq -r '[.contributors[] | select(.self.end_live_bytes > 0) | .name] | sort | join(" ")' >out
  [ "$(cat out)" = "${expected#*|}" ] || complain "lifetimes ${expected%|*}: $(cat out)"
done
cmtreport --json hand.trace | jq -ce '.frames as $frames | [$frames.allocation_functions[] | $frames.function[.]] | sort == ["_PyObject_Malloc", "malloc", "xmalloc"]' >out || complain "frames that hand memory on: $(cat out)"
cmtreport --json --raw hand.trace | jq -ce '.frames.allocation_functions == []' >out || complain "--raw: frames that hand memory on"
cmtreport --diff=hand.trace --json hand.trace >json && jq -e '[.frames.function[] | select(test("malloc"; "i"))] == ["xmalloc"]' json >out || complain "--diff: $(jq -c .frames.function json)"
cmtreport --diff=hand.trace --raw --json hand.trace | jq -e '.frames.function | index("_PyObject_Malloc")' >out || complain "--diff --raw"
: >empty.trace
cmtreport empty.trace >text 2>err || complain "an empty trace: $(cat err)"
grep -q 'nothing stands out' text || complain "an empty trace: $(cat text)"
# Blocks that are freed while the recording is paused count as live. A pause before any block takes nothing.
{
  echo 'mark("cmt_pause")'
  for i in $(seq 1 200); do echo "malloc(5000) = $((100000 * i))<$i>"; done
  echo 'mark("cmt_pause")'
} >paused.trace
cmtreport paused.trace >text
grep -q 'still live at the end, or freed in a pause of the recording' text || complain "a pause: $(cat text)"
cmtreport --json paused.trace >json
grep -q '"pauses": 1$' json || complain "a pause in JSON"
sed '$d' paused.trace >unpaused.trace
cmtreport unpaused.trace >text
grep -q 'still live at the end' text && ! grep -q 'in a pause' text || complain "no pause: $(cat text)"
# The blocks of several processes are added up over their ends, which are at different times.
cp unpaused.trace second.trace
cmtreport unpaused.trace second.trace >text 2>err
grep -q 'live when each process ended' text && ! grep -q 'still live at the end' text || complain "two ends: $(cat text)"

# A page is not written into a file whose ending promises another form.
for name in x.pdfx x.svg; do
  cmtreport -o $name paused.trace >out 2>err && status=0 || status=$?
  [ "$status" = 2 ] && grep -q 'a page ends in .html' err && [ ! -e $name ] || complain "-o $name: $status $(cat err)"
done
for name in x.htm x page.d/x; do
  mkdir -p page.d
  cmtreport -o $name paused.trace && grep -q '<html' $name || complain "-o $name"
done

exit $failed
