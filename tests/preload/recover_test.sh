# Checks that no event is lost if program and collector are killed together, as in a machine or container that is killed.
# Every event is in the trace's file or in the file of the rings.

collector=$BUILD/preload/cmttrace-collector
failed=0
complain() { echo "$*" >&2; failed=1; }
mkfifo in out

# killed FORM STACKS BLOCKS...: a program that made these many blocks, in turns, is killed with its collector; its trace is
# recovered. STACKS is 1: with call stacks.
killed() {
  form=$1 stacks=$2 sum=0
  shift 2
  rm -f t.* rings said
  LD_PRELOAD=$TRACER CMTTRACE_OUT=t.$form CMTTRACE_RINGS=rings CMTTRACE_TIME=1 CMTTRACE_STACKS=$stacks \
    "$BUILD/tests/preload/marked" blocks <in >out &
  exec 3>in 4<out
  for blocks in "$@"; do
    echo "$blocks" >&3
    read -r said <&4
    sum=$((sum + blocks))
  done
  kill_both "t.$form"
  wait $! 2>/dev/null || true
  exec 3>&- 4<&-
  "$collector" --recover rings >said || complain "recover: exit $?"
  trace2cmt --to=text t.recovered.$form >text 2>err || complain "$form: $(cat err)"
  /usr/bin/python3 "$SOURCE/tests/preload/checks/trace.py" --truncated text >/dev/null || complain "$form: a broken trace"
  trace2cmt --verify t.recovered.$form >verified 2>&1 || complain "$form: $(cat verified)"
  [ "$(grep -c '^malloc(60006)' text)" = $sum ] || complain "$form $*: $(grep -c '^malloc(60006)' text) blocks, not $sum; $(cat said)"
  # All were made in one place, those before a saved position and those after it.
  places=$(sed -n 's/^malloc(60006).* stack=/stack=/p' text | sort | uniq -c | tr -s ' ')
  [ "${places% stack=*}" = "$([ "$stacks" = 0 ] || echo " $sum")" ] || complain "$form $*: $places, not $sum; $(cat said)"
}
kill_both() {
  writer=$(perl -I"$SOURCE/tests/preload/checks" -Mcollector -e 'print collector(@ARGV)' "$1")
  kill -STOP "$writer"
  kill -KILL $! "$writer"
}

# A place that was never filled, because a signal handler came between, and the handler's records after it.
# With stacks the place comes some thousand instructions later, and may not be met.
steps=$([ -n "${CMTTRACE_STACKS:-}" ] && seq 30 397 9000 || seq 30 4 90)
for step in $steps; do
  rm -f t.* rings
  LD_PRELOAD=$TRACER CMTTRACE_OUT=t.trace CMTTRACE_RINGS=rings CMTTRACE_TOUCHED=64K \
    "$BUILD/tests/preload/interrupted" malloc kill "$step" >out &
  read -r said <out || true
  [ "$said" = + ] || { wait $!; break; }
  kill_both t.trace
  wait $! 2>/dev/null || true
  "$collector" --recover rings "unfilled.$step.trace" >said || complain "unfilled, $step: exit $?"
  [ "$(grep -c '^malloc(5000[23])' "unfilled.$step.trace")" = 2 ] || complain "unfilled, $step: no later event"
done
[ -n "${CMTTRACE_STACKS:-}" ] || grep -L '^malloc(50001)' unfilled.*.trace | grep -q . || complain 'no place that was not filled'
rm unfilled.*

killed trace 1 1000 5
killed cmt 1 1000 20000 5
/usr/bin/python3 "$SOURCE/tests/preload/checks/broken_rings.py" "$collector" rings stacks || complain 'broken rings with stacks'
for form in trace cmt; do  # cmt comes last: its rings and trace are used below
  killed $form 0 10
  [ $form.${CMT_DAILY:-} = trace. ] || killed $form 0 1000 60000 5 20000
done

# Rings that are whole, cut, of a lost trace, or broken. They are read from a file that may not be written, and stay.
# refused LINE...: exit 125, one line, and no file.
refused() {
  status=0
  rm -f back.trace
  "$collector" --recover "$1" back.trace >said 2>err || status=$?
  [ "$status" = 125 ] && [ "$(cat err)" = "cmttrace: $2" ] && [ ! -e back.trace ] || complain "$1: $status $(cat err)"
}
chmod 400 rings
before=$(cksum <rings)
"$collector" --recover rings again.trace >said || complain "a second time: exit $?"
trace2cmt --to=text t.recovered.cmt | cmp - again.trace || complain 'recovered twice, differently'
[ "$(cksum <rings)" = "$before" ] || complain 'the rings have changed'
# On a full disk, where a hole of the file has no memory.
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
  mkdir disk
  unshare -m bash -euc 'mount -t tmpfs -o size=32m none disk
    cp --sparse=always rings disk/rings
    dd if=/dev/zero of=disk/fill bs=1k 2>/dev/null || true
    "$1" --recover disk/rings full.trace' recover "$collector" >said || complain "rings on a full disk: exit $?"
  cmp full.trace again.trace || complain 'rings on a full disk: recovered differently'
else
  echo 'skipped: rings on a full disk, which needs root to mount one'
fi
status=0
"$collector" --recover rings again.trace 2>err || status=$?
[ $status = 125 ] && grep -q 'again.trace: File exists' err || complain "an output that exists: $status $(cat err)"
: >empty
head -c 20000 rings >short
head -c 100000 rings >table
refused empty 'empty: holds no rings'
refused short 'short: holds no rings'
refused table 'table: is cut off in the table of its rings'
refused again.trace 'again.trace: holds no rings'
# The file is cut off after the table, in the first ring: events in the trace's file are still written.
for kilobytes in $(seq 64 64 8192); do
  status=0
  rm -f back.trace
  head -c ${kilobytes}K rings >cut
  "$collector" --recover cut back.trace >said 2>err || status=$?
  grep -q 'in the table' err || break
done
[ $status = 125 ] && [ "$(cat err)" = 'cmttrace: cut: is cut off: 1 of its rings are missing' ] || complain "cut: $status $(cat err)"
trace2cmt --verify back.trace >said && [ "$(grep -c '^malloc(60006)' back.trace)" -le $sum ] || complain "cut: $(cat said)"
mv t.cmt away.cmt
refused rings "$PWD/t.cmt: No such file or directory"
: >t.cmt
refused rings "$PWD/t.cmt: is shorter than its rings say"
mv away.cmt t.cmt
/usr/bin/python3 "$SOURCE/tests/preload/checks/broken_rings.py" "$collector" rings || complain 'broken rings'

# Where both end as they should, nothing is left.
rm -f t.* rings
echo 5 | LD_PRELOAD=$TRACER CMTTRACE_OUT=t.trace CMTTRACE_RINGS=rings "$BUILD/tests/preload/marked" blocks >said
[ ! -e rings ] && grep -q '^malloc(60006)' t.trace || complain "an ordinary end: $(ls)"

head -c 100000 /dev/zero >rings
status=0
"$collector" --recover rings 2>err || status=$?
[ "$status" = 125 ] && [ "$(cat err)" = 'cmttrace: rings: holds no rings' ] || complain "no rings: $status $(cat err)"
status=0
"$collector" --recover nowhere 2>err || status=$?
[ "$status" = 125 ] && grep -q '^cmttrace: nowhere: No such file' err || complain "no file: $status $(cat err)"
status=0
"$collector" 2>err || status=$?
[ "$status" = 2 ] && [ "$(wc -l <err)" = 1 ] || complain "wrong use: $status $(cat err)"
[ "$failed" = 0 ]
