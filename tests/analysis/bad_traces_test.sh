# Checks that defects of a trace are reported with their position and counted, and that --strict stops at the first.

bad=$SOURCE/tests/analysis/golden/bad.trace
cp "$bad" bad.trace

for tool in lifetimes overhead; do
  "$tool" bad.trace >out 2>err
  diff -u "$SOURCE/tests/analysis/golden/bad.$tool.messages" err
  status=0; "$tool" --strict bad.trace >out 2>err || status=$?
  [ "$status" = 1 ]
  [ "$(wc -l <err)" = 1 ]
done

# A consistent text up to the line that is wrong is shown before the error.
printf 'malloc(8) = 1000<1>\nfree(1000<1>)\nfree(1000<1>)\n' >twice.trace
status=0; lifetimes --strict twice.trace >out 2>err || status=$?
[ "$status" = 1 ]
[ "$(head -n 1 out)" = "malloc(8) = 1000<1>" ]
[ "$(cat err)" = "lifetimes: twice.trace:3: its tag contradicts the events before: dropped" ]

# Only ten are reported one by one.
for i in $(seq 30); do echo "free(1000<5>)"; done | sed '1i malloc(8) = 1000<5>' >many.trace
lifetimes many.trace >out 2>err
[ "$(wc -l <err)" = 11 ]
[ "$(tail -n 1 err)" = "lifetimes: 29 defects in the trace" ]

# Neighbours need addresses.
printf 'mark("begin")\nmalloc(8) = <1>\n' >nowhere.trace
status=0; overhead nowhere.trace >out 2>err || status=$?
[ "$status" = 1 ]
[ "$(cat err)" = "overhead: nowhere.trace:2: a block without an address: its neighbours cannot be known" ]
lifetimes nowhere.trace >out 2>err
[ ! -s err ]

# A defect is reported once, also where a tool reads the trace twice. A closed output is no file that the tool reads.
printf 'malloc(8) = 1000<1>\nwords\n' >words.trace
for tool in lifetimes overhead cmtreport; do
  "$tool" --summary words.trace >out 2>err || "$tool" words.trace >out 2>err
  [ "$(cat err)" = "$tool: words.trace:2: expected a call, as in malloc(8): words"$'\n'"$tool: 1 defect in the trace" ]
done
status=0
cmtwatch get $$ >&- 2>err || status=$?
[ "$status" = 1 ] && [ "$(cat err)" = 'cmtwatch get: writing: Bad file descriptor' ]

# A text with a header that has no end was cut off.
printf '#cmt text=1\nmalloc(8) = 1000<1>\n' >cut.trace
for tool in lifetimes overhead; do
  "$tool" cut.trace >out 2>err
  [ "$(cat err)" = "$tool: cut.trace: breaks off before its end" ]
  [ "$(wc -l <out)" = 1 ]
done

# A file without any event is no trace. Empty standard input is none either: the command before it in the pipe has failed.
printf '// C\nint main;\n' >main.c
for tool in lifetimes overhead; do
  status=0
  : | "$tool" >out 2>err || status=$?
  [ "$status" = 1 ] && [ ! -s out ]
  [ "$(cat err)" = "$tool: standard input: the trace is empty" ]
  status=0
  "$tool" --summary main.c >out 2>err || status=$?
  [ "$status" = 1 ] && [ ! -s out ]
  [ "$(cat err)" = "$tool: main.c:1: expected a call, as in malloc(8): // C (no line of this input is understood; it looks like C or C++ source)" ]
done

# A .cmt has no lines: there the event is named.
cp "$SOURCE/format-spec/vectors/large.cmt" .
overhead large.cmt >out 2>err
[ "$(head -n 1 err)" = "overhead: large.cmt: event 4: block 1<4294967299> overlaps 7f0000000000<4294967296>" ]
