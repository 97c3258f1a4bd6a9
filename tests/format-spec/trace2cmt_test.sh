# trace2cmt from outside: its input, its output, and its messages.

failed=0
complain() { echo "wrong: $*" >&2; failed=1; }

# run COMMAND...: sets `status`, and writes the files out and err.
run() { status=0; "$@" >out 2>err || status=$?; }

# says STATUS LINE: checks that the last run ended with STATUS, and LINE as the only line on standard error.
says() {
  [ "$status" = "$1" ] || complain "exit $status, not $1: $(cat err)"
  [ "$(cat err)" = "$2" ] || complain "it said: $(cat err), not: $2"
}

cp "$SOURCE/format-spec/vectors/readme_6655.text" t
cp "$SOURCE/format-spec/vectors/legacy.cmt" "$SOURCE/format-spec/vectors/header.text" .
trace2cmt <t >t.cmt

# Text, .cmt and legacy .cmt are read from a file and from a pipe alike. Text to text is canonical.
for input in t t.cmt legacy.cmt header.text; do
  run trace2cmt -s $input
  says 0 ""
  cp out from_file
  for pipe in "-" "" "/dev/stdin"; do
    run trace2cmt -s $pipe < <(cat $input)
    says 0 ""
    cmp -s out from_file || complain "$input: a pipe (${pipe:-no FILE}) and a file differ"
  done
  run trace2cmt --to=text <$input
  cmp -s out from_file || complain "$input: redirected and from a file differ"
  trace2cmt --to=cmt $input >again.cmt
  trace2cmt -s again.cmt | cmp -s - from_file || complain "$input: text -> .cmt -> text differs"
done
trace2cmt -s t.cmt | cmp - t
printf ' malloc ( 8 )=0X81D220B48 < 6655 >  \r\n\n# words\nfree(0)  # an annotation\r\nfree(0x0) thread=0 stack=3' | trace2cmt -s >out
printf 'malloc(8) = 81d220b48<6655>\nfree(0)\nfree(0)\n' | cmp - out || complain "tolerated text: $(cat out)"
for level in 1 19; do trace2cmt --level=$level t | trace2cmt -s | cmp - t; done
run trace2cmt /dev/null
[ "$status" = 0 ] && [ -z "$(trace2cmt -s out 2>/dev/null)" ] || complain "an empty trace"

# A .cmt never goes to a terminal.
if command -v script >/dev/null; then
  status=0
  script -qec "trace2cmt t" /dev/null </dev/null >out 2>&1 || status=$?
  [ "$status" = 1 ] && grep -q "will not write a .cmt to a terminal; redirect it, or use -o or -s" out ||
    complain "a terminal: exit $status, $(cat out)"
  script -qec "trace2cmt --to=parquet t" /dev/null </dev/null >out 2>&1 || status=$?
  grep -q "will not write a Parquet file to a terminal" out || complain "Parquet to a terminal: $(cat out)"
  script -qec "trace2cmt -s t" /dev/null </dev/null | tr -d '\r' | cmp - t || complain "text goes to a terminal"
fi

# Wrong lines are reported with their place, counted, and left out. With --strict, the first is an error.
printf 'malloc(8) = 1000<1>\nmalloc(8\nfoo(3)\nfree(1000<1>)\n' >bad.trace
run trace2cmt -s bad.trace
says 0 "trace2cmt: bad.trace:2: expected ')': malloc(8
trace2cmt: bad.trace:3: expected a known call: foo(3)
trace2cmt: 2 events, 2 repairs: 2 lines not understood"
printf 'malloc(8) = 1000<1>\nfree(1000<1>)\n' | cmp - out || complain "what is left of bad.trace: $(cat out)"
run trace2cmt --strict -s bad.trace
says 1 "trace2cmt: bad.trace:2: expected ')': malloc(8"
yes 'foo(3)' | sed '12s/.*/free(0)/;12q' >many.trace || true
run trace2cmt -s many.trace
[ "$(wc -l <err)" = 11 ] && grep -qx 'trace2cmt: 1 event, 11 repairs: 11 lines not understood' err || complain "many wrong lines: $(cat err)"

# An input without an event is no trace, and the message names what it looks like. An empty trace is reported as empty.
while IFS='|' read -r bytes words; do
  printf "$bytes" >nonsense
  for task in -s --info --verify; do
    run trace2cmt $task nonsense
    says 1 "trace2cmt: nonsense$words"
  done
done <<'END'
hello\n|:1: expected a call, as in malloc(8): hello (no line of this input is understood)
\211PNG\r\n\032\n\n|: neither a .cmt nor a text trace: it looks like a PNG image
<html>\n\n</html>\n|:1: expected a call, as in malloc(8): <html> (no line of this input is understood; it looks like HTML or XML)
desc: --massif-out-file=m\ncmd: ls\n|:1: expected a call, as in malloc(8): desc: --massif-out-file=m (no line of this input is understood; it looks like a profile of valgrind's massif, which has no calls: valgrind --trace-malloc=yes logs them)
{"dhatFileVersion":2\n|:1: expected a call, as in malloc(8): {"dhatFileVersion":2 (no line of this input is understood; it looks like a profile of valgrind's DHAT, which has no calls: valgrind --trace-malloc=yes logs them)
memray\0\014|: neither a .cmt nor a text trace: it looks like a recording of memray, which is not read: cmttrace records the calls with their stacks
heap_v2/524288\n|:1: expected a call, as in malloc(8): heap_v2/524288 (no line of this input is understood; it looks like a heap profile of jemalloc, which has samples and no calls: cmttrace records them)
heap profile: 1: 2\n|:1: expected a call, as in malloc(8): heap profile: 1: 2 (no line of this input is understood; it looks like a heap profile of gperftools, which has no calls: cmttrace records them)
#!/bin/sh\nls\n|:2: expected a call, as in malloc(8): ls (no line of this input is understood; it looks like a script)
END
for nothing in '' '\n# words\n' '#cmt text=1\n#cmt end=complete\n'; do
  printf "$nothing" >empty.trace
  run trace2cmt -s empty.trace
  says 0 "trace2cmt: empty.trace: the trace is empty"
  run trace2cmt --verify empty.trace
  trace2cmt --info empty.trace | grep -qx '  the trace is empty' || complain "--info of an empty trace"
  [ "$status" = 0 ] && grep -qx 'empty.trace: ok, it is empty' out || complain "an empty trace: $(cat out err)"
done
run trace2cmt -s t empty.trace
[ "$status" = 0 ] && grep -qx 'trace2cmt: empty.trace: the trace is empty' err || complain "one of two is empty: $(cat err)"

# A byte order mark and a missing last line feed lose nothing.
printf '\357\273\277malloc(8) = 1000<1>\nfree(1000<1>)' >mark.trace
run trace2cmt -s mark.trace
says 0 ""
printf 'malloc(8) = 1000<1>\nfree(1000<1>)\n' | cmp - out || complain "a byte order mark: $(cat out)"
printf '\357\273\277= Start\n@ [0x1] + 0x10 0x20\n= End' >mark.log
run trace2cmt -s mark.log
[ "$status" = 0 ] && grep -qx 'malloc(32) = 10<1> stack=2' out || complain "a log with a byte order mark: $(cat out err)"
printf 'malloc(8) = 1000<2>\nmalloc(8) = 2000<2>\nfree(3000<2>)\nfree(3000<2>)\n' >tags.trace
run trace2cmt -s tags.trace
says 0 "trace2cmt: tags.trace:2: its tag contradicts the events before: dropped
trace2cmt: tags.trace:3: its block was made at another address: given at that one
trace2cmt: tags.trace:4: its tag contradicts the events before: dropped
trace2cmt: 2 events, 3 repairs: 2 events with contradicting tags dropped, 1 block given at another address than its own"
printf 'malloc(8) = 1000<2>\nfree(1000<2>)\n' | cmp - out || complain "contradicting tags: $(cat out)"
run trace2cmt --strict -s tags.trace
says 1 "trace2cmt: tags.trace:2: its tag contradicts the events before: dropped"
printf 'malloc(8) = 10\nmalloc(8) = 20\nfree(30)\nrealloc(40, 8) = 50\nmalloc(9) = 20\n' >untagged.trace
run trace2cmt -s untagged.trace
says 0 "trace2cmt: untagged.trace:3: no block lives at this address: dropped
trace2cmt: untagged.trace:4: no block lives at this address: taken as an allocation
trace2cmt: untagged.trace:5: a block lives at this address already: ended first
trace2cmt: 5 events, 3 repairs: 1 free of no block dropped, 1 realloc of no block taken as an allocation, 1 block handed out twice and ended first"
printf 'malloc(8) = 10<1>\nmalloc(8) = 20<2>\nmalloc(8) = 50<3>\nfree(20<2>)\nmalloc(9) = 20<4>\n' | cmp - out ||
  complain "untagged.trace: $(cat out)"
printf 'malloc(8) = 10<1>\0' >zero.trace
run trace2cmt zero.trace
says 1 "trace2cmt: zero.trace: neither a .cmt nor a text trace"
head -c 1100000 /dev/zero | tr '\0' x >long.trace
run trace2cmt long.trace
[ "$status" = 1 ] && grep -q 'a line of more than 1 MiB: not a trace' err || complain "a long line: $(cat err)"
printf '#cmt text=2\n' >version.trace
run trace2cmt version.trace
says 1 "trace2cmt: version.trace:1: text version 2; this reader knows version 1"

# An output that cannot be written, or an input that cannot be read, is an error in one line.
for to in cmt text legacy rep csv parquet; do
  status=0; trace2cmt --to=$to t >/dev/full 2>err || status=$?
  says 1 "trace2cmt: writing: No space left on device"
  run trace2cmt --to=$to -o /dev/full t
  says 1 "trace2cmt: /dev/full: No space left on device"
done
for i in $(seq 20000); do echo "malloc($i) = <$i>"; done >big.trace
{ sleep 0.2; status=0; trace2cmt -s big.trace 2>err || status=$?; echo $status >closed.status; } | true
[ "$(cat closed.status)" = 141 ] && [ ! -s err ] || complain "a closed pipe: exit $(cat closed.status)"
run trace2cmt missing
says 1 "trace2cmt: missing: No such file or directory"
run trace2cmt .
[ "$status" = 1 ] && [ "$(wc -l <err)" = 1 ] || complain "a folder: exit $status, $(cat err)"
run trace2cmt -o no/such/folder t
says 1 "trace2cmt: no/such/folder: No such file or directory"

# -o names and replaces a file only when the output is whole.
mkdir o
run trace2cmt --strict -o o/new.cmt bad.trace
[ "$status" = 1 ] && [ -z "$(ls o)" ] || complain "a failure leaves: $(ls o)"
echo before >o/old.cmt
run trace2cmt --strict -o o/old.cmt bad.trace
[ "$(ls o)" = old.cmt ] && [ "$(cat o/old.cmt)" = before ] || complain "a failure replaced the output: $(ls o)"
run trace2cmt -o o/old.cmt t
says 0 ""
[ "$(ls o)" = old.cmt ] && cmp -s o/old.cmt t.cmt && [ ! -s out ] || complain "-o: $(ls o)"

# If the program is ended early, even by SIGKILL, it leaves no file and replaces none.
mkfifo fifo
for signal in TERM HUP KILL; do
  trace2cmt -o o/old.cmt fifo &
  exec 3>fifo
  cat big.trace >&3  # more than it reads before it opens its output
  for i in $(seq 500); do ls -l /proc/$!/fd 2>/dev/null | grep -q "$PWD/o/" && break; sleep 0.02; done
  kill -$signal $!
  wait $! && complain "SIG$signal did not end it"
  exec 3>&-
  cmp -s o/old.cmt t.cmt || complain "SIG$signal replaced the output"
  [ "$(ls o)" = old.cmt ] || [ "$(ls o | sort | tr '\n' ' ')" = "old.cmt old.cmt.part " ] || complain "SIG$signal leaves: $(ls o)"
done

# A file that breaks off is read to its last whole block, with a warning. With --strict, it is an error.
cp "$SOURCE/format-spec/vectors/blocks.cmt" .
head -c 400 blocks.cmt >cut.cmt
for input in cut.cmt -; do
  run trace2cmt -s $input <cut.cmt
  says 0 "trace2cmt: warning: $input: the trace breaks off; all that is whole was read"
  [ "$(wc -l <out)" -ge 3 ] && head -n "$(wc -l <out)" "$SOURCE/format-spec/vectors/blocks.text" | cmp - out
done
run trace2cmt -s --strict cut.cmt
[ "$status" = 1 ] && grep -q '^trace2cmt: cut.cmt: offset 0x[0-9a-f]*: a section is cut off$' err || complain "$(cat err)"
head -n 5 header.text >cut.text
run trace2cmt -s cut.text
says 0 "trace2cmt: warning: cut.text: the trace breaks off; all that is whole was read"
[ "$(tail -n 1 out)" = '#cmt end=truncated' ] || complain "the end of cut.text: $(tail -n 1 out)"

# Wrong use: exit status 2, a line with the fault, and a line that refers to --help.
while IFS='|' read -r arguments words; do
  run trace2cmt $arguments
  says 2 "trace2cmt: $words
Try 'trace2cmt --help' for more information."
done <<'END'
--to=xml|--to: expected cmt, text, legacy, rep, csv, parquet or heaptrack, not 'xml'
-s --to=csv|-s is --to=text, and --to=csv is given too
END
for wrong in --nonsense "--level=0 t" "--level=20 t" "--level=x t" -o --slice "--slice=3" "--thread=1,"; do
  run trace2cmt $wrong
  [ "$status" = 2 ] && [ "$(wc -l <err)" = 2 ] && [ ! -s out ] &&
    [ "$(tail -n 1 err)" = "Try 'trace2cmt --help' for more information." ] || complain "trace2cmt $wrong: $status, $(cat err)"
done

# More frees of unknown blocks than are kept until the first allocation.
awk 'BEGIN { for (i = 1; i <= 65600; i++) print "free(<" i ">)"; print "malloc(8) = <1000001>" }' >unknown.trace
trace2cmt -o unknown.cmt unknown.trace
trace2cmt --verify unknown.cmt >out 2>err || complain "--verify of many unknown blocks: $(cat out err)"
trace2cmt -s unknown.cmt | grep -v '^#' | cmp - unknown.trace || complain 'frees of many unknown blocks are others'
exit $failed
