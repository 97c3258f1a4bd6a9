# Marks, pauses, commands from outside, limits, samples and usable sizes.

. "$SOURCE/tests/waiting.sh"
marked=$BUILD/tests/preload/marked
failed=0
complain() { echo "$*" >&2; failed=1; }
traced() { rm -f t.*; LD_PRELOAD=$TRACER CMTTRACE_OUT=t.trace "$@" || complain "$*: exit $?"; }
seen() { grep -oE '^malloc\(6000[0-9]\)|^mark.*' t.trace | uniq | sed 's/ thread=.*//' | paste -sd' '; }
expect() { [ "$(seen)" = "$1" ] || complain "$(seen), not $1"; }

"$marked" inside || complain "without the tracer: exit $?"
traced "$marked" inside
expect 'malloc(60001) mark("phase \"two\"") malloc(60002) mark("cmt_pause") mark("cmt_resume") malloc(60004)'
/usr/bin/python3 "$SOURCE/tests/preload/checks/trace.py" t.trace >/dev/null || failed=1

traced "$marked" labels
trace2cmt --strict <t.trace >t.cmt || complain 'labels that are no text'
[ "$(grep -c '^mark' t.trace)" = 4 ] && grep -qx 'mark("? a ??")' t.trace && grep -qxF 'mark("a\nb\t\"\\\x01")' t.trace || complain "labels: $(cat t.trace)"
[ "$(grep -m 1 -o 'mark(.*' t.trace | grep -o '€' | wc -l)" = 341 ] || complain "a long label: $(grep -m 1 '^mark' t.trace)"

export CMTTRACE_START=paused
traced "$marked" inside
expect 'mark("cmt_pause") mark("cmt_resume") malloc(60004)'
unset CMTTRACE_START

# From outside: each command is done when its effect is seen.
mkfifo in out
rm -f t.*
LD_PRELOAD=$TRACER CMTTRACE_OUT=t.trace CMTTRACE_CONTROL=control.%p "$marked" reads <in >out &
exec 3>in 4<out
make() { echo "$1" >&3; read -r said <&4; }
make 60001
until_true "test -p control.$!"
echo 'mark from outside' >control.$!
echo flush >control.$!
until_true "grep -q 'mark(\"from outside\")' t.trace"
# After a second the file has the recorded events, in whole blocks, with a command or without.
make 60005
until_true "grep -q '^malloc(60005)' t.trace"
[ "$(lifetimes --summary t.trace 2>&1 >/dev/null)" = 'lifetimes: t.trace: is still being recorded; its part so far was read' ] ||
  complain "while it is recorded: $(lifetimes --summary t.trace 2>&1 >/dev/null)"
cmtreplay --verify t.trace >err 2>&1
grep -qx 'cmtreplay: t.trace: is still being recorded; its part so far was read' err || complain "while it is recorded: $(cat err)"
# Commands that are none, and more of them than are read at once.
echo $'stopp\n\nmark' >control.$!
until_true "echo flush >control.$!; grep -q 'mark(\"unknown command: mark\")' t.trace"
/usr/bin/python3 -c 'import sys; open(sys.argv[1], "wb", 0).write(b"".join(b"mark many %d %s\n" % (i, b"x" * (i % 50)) for i in range(400)))' control.$!
until_true "echo flush >control.$!; grep -q 'mark(\"many 399 ' t.trace"
[ "$(grep -c '^mark("many [0-9]* x*")' t.trace)" = 400 ] && [ "$(grep -c '^mark("unknown command: ' t.trace)" = 2 ] ||
  complain "commands: $(grep -v '^mark("many [0-9]* x*")' t.trace | grep '^mark')"
echo stop >control.$!
until_true "echo flush >control.$!; grep -q 'mark(\"cmt_pause\")' t.trace"
make 60009  # the first event after a stop may still be recorded
make 60003
echo start >control.$!
until_true "echo flush >control.$!; grep -q 'mark(\"cmt_resume\")' t.trace"
make 60004
# A command to stop is never overtaken by the collector's own work at the rings.
for n in $(seq 2 25); do
  for _ in 1 2 3; do make 60010; done
  echo stop >control.$!
  until_true "echo flush >control.$!; [ \$(grep -c 'mark(\"cmt_pause\")' t.trace) = $n ]"
  make 60011
  make 60012
  echo start >control.$!
  until_true "echo flush >control.$!; [ \$(grep -c 'mark(\"cmt_resume\")' t.trace) = $n ]"
done
exec 3>&-
wait $! || complain "the program: exit $?"
! grep -q '^malloc(60012)' t.trace || complain "after a stop: $(grep -c '^malloc(60012)' t.trace) events"
[ "$(grep -v 'unknown command\|mark("many' t.trace >t2 && mv t2 t.trace && seen | sed 's/ malloc(60009)//; s/malloc(60004).*/malloc(60004)/')" = 'malloc(60001) mark("from outside") malloc(60005) mark("cmt_pause") mark("cmt_resume") malloc(60004)' ] ||
  complain "from outside: $(seen)"
[ ! -e control.$! ] || complain "the FIFO is still there"

# Limits: the trace breaks off, the program goes on, nobody says a word.
for limit in MAX_EVENTS=1 MAX_BYTES=20K MAX_TIME=1ns; do
  for form in trace cmt; do
    rm -f t.*
    env CMTTRACE_$limit CMTTRACE_OUT=t.$form LD_PRELOAD=$TRACER "$marked" many 2>err || complain "$limit: exit $?"
    [ ! -s err ] || complain "$limit: $(cat err)"
    trace2cmt --to=text t.$form >text
    [ "$(tail -n 1 text)" = '#cmt end=truncated' ] || complain "$limit: $(tail -n 1 text)"
    # 600,000 events that are all alike may be less than 20 KiB in the compact form.
    [ $limit.$form = MAX_BYTES=20K.cmt ] || [ "$(grep -vc '^#' text)" -lt 600000 ] || complain "$limit ($form): no limit"
    [ $limit != MAX_BYTES=20K ] || [ "$(stat -c %s t.$form)" -lt 24000 ] || complain "$limit: $(stat -c %s t.$form) bytes"
  done
done

rm -f t.*
CMTTRACE_SAMPLE=1ms CMTTRACE_USABLE=1 LD_PRELOAD=$TRACER CMTTRACE_OUT=t.trace "$marked" reads <in >out &
exec 3>in 4<out
make 24
until_true '[ "$(grep -c "^sample([1-9][0-9]*)" t.trace)" -gt 5 ]'
exec 3>&- 4<&-
wait $! || complain "samples: exit $?"
grep -q '^malloc(24) = [0-9a-f]*<[0-9]*> usable=24\( stack=[0-9]*\)\?$' t.trace || complain "no usable size: $(grep -m 3 '^malloc' t.trace)"
/usr/bin/python3 "$SOURCE/tests/preload/checks/trace.py" t.trace >/dev/null || failed=1

# The trace has as many events as wanted.
for events in 1 7 1000 100003; do
  rm -f t.*
  CMTTRACE_MAX_EVENTS=$events CMTTRACE_OUT=t.trace,t.cmt LD_PRELOAD=$TRACER "$marked" many || complain "$events events: exit $?"
  [ "$(grep -vc '^#' t.trace)" = $events ] || complain "$events events: $(grep -vc '^#' t.trace)"
  trace2cmt --verify t.cmt >said || complain "$events events: $(cat said)"
  trace2cmt --to=text t.cmt | cmp - t.trace || complain "$events events: two forms differ"
done

# A thread that may not wait drops, and what is dropped is counted.
CMTTRACE_ON_FULL=drop CMTTRACE_STATUS=status traced "$marked" many
lost=$(sed -n 's/.* lost=\([0-9]*\) .*/\1/p' status)
[ "$(grep -cE '^(malloc|free)\(' t.trace)" -le 600100 ] || complain "too many events"
[ "$lost" = 0 ] || grep -q '^#cmt repairs=' t.trace || complain "$lost lost, and not said"

# Both forms at once hold the same.
CMTTRACE_TIME=1 LD_PRELOAD=$TRACER CMTTRACE_OUT=both.trace,both.cmt "$marked" inside
trace2cmt --to=text both.cmt | cmp - both.trace || complain "two forms differ"

# A limit of time leaves each event its own time.
CMTTRACE_TIME=1 CMTTRACE_MAX_TIME=1h CMTTRACE_WAIT=1 LD_PRELOAD=$TRACER CMTTRACE_OUT=own.trace perl -e '@a = map {[$_]} 1 .. 2000'
[ "$(grep -o 'time=[0-9]*' own.trace | sort -u | wc -l)" -gt 1000 ] || complain "times of a limited recording"

# A clock in steps: events in between have the same time.
CMTTRACE_TIME=100us CMTTRACE_WAIT=1 CMTTRACE_STATUS=steps LD_PRELOAD=$TRACER CMTTRACE_OUT=steps.trace perl -e '@a = map {[$_]} 1 .. 200000'
events=$(grep -c 'time=' steps.trace) times=$(grep -o 'time=[0-9]*' steps.trace | sort -u | wc -l)
[ "$times" -gt 5 ] && [ $((times * 3)) -lt "$events" ] || complain "$times times of $events events"
[ "$(sed -n 's/.* time_step_ns=\([0-9]*\) .*/\1/p' steps)" -ge 100000 ] || complain "the longest step: $(cat steps)"

# With times the trace says how much the program ran and waited.
[ "$(grep -c '^#stretch elapsed=[1-9][0-9]* ran=[0-9]* waited=[0-9]* held=[0-9]* busy=[0-9]*$' steps.trace)" -ge 1 ] &&
  grep -q '^#cmt processors=[1-9]' steps.trace || complain "no stretches"
trace2cmt --info steps.trace | grep -qE '^  elapsed  .* until the last look at the threads; they (ran for .* for the recorder|were not seen to run)$' || complain "--info: elapsed"
trace2cmt --info --json steps.trace | grep -q '"processor_wait_ns": *[0-9]' || complain "--info --json"
[ "$failed" = 0 ]
