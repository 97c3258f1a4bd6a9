# A full ring while the collector is stopped. A thread waits and loses nothing; with CMTTRACE_ON_FULL=drop it drops events,
# and counts each.

failed=0
complain() { echo "$*" >&2; failed=1; }
mkfifo in out
# begin ON_FULL: starts a program that makes as many blocks as a line of its input says, with a stopped collector.
begin() {
  rm -f t.trace status
  LD_PRELOAD=$TRACER CMTTRACE_OUT=t.trace CMTTRACE_STATUS=status CMTTRACE_ON_FULL=$1 "$BUILD/tests/preload/marked" blocks <in >out &
  program=$!
  exec 3>in 4<out
  make 10
  collector=$(perl -I"$SOURCE/tests/preload/checks" -Mcollector -e 'print collector("t.trace")')
  kill -STOP "$collector"
  while grep -qs '^State:[[:space:]][^Tt]' "/proc/$collector/task"/*/status; do :; done  # a thread stops when it looks
}
make() { echo "$1" >&3; read -r said <&4; }
end() {
  exec 3>&- 4<&-
  wait $program || complain "exit $?"
  lost=$(sed -n 's/.* lost=\([0-9]*\) .*/\1/p' status)
  made=$(grep -c '^malloc(60006)' t.trace || true) freed=$(grep -c '^free(' t.trace || true)
}

begin wait
echo 60000 >&3
! read -r -t 0.3 said <&4 || complain 'wait: the thread did not wait'
kill -CONT "$collector"
read -r said <&4
end
[ "$made" = 60010 ] && [ "$lost" = 0 ] && ! grep -q '^#cmt repairs' t.trace || complain "wait: $made blocks, $lost lost"

begin drop
make 60000
kill -CONT "$collector"
make 10
end
# A ring that nothing came into for a second has 2,048 places, before it has 16,384.
[ "$lost" -gt 80000 ] || complain "drop: $lost lost"
# A free whose malloc was dropped has no block, and is a repair or a block that was never seen; a malloc whose free was dropped stays.
repairs=$(sed -n 's/^#cmt repairs=\([0-9]*\)$/\1/p' t.trace)
[ "$repairs" -ge "$lost" ] || complain "drop: $lost lost, $repairs told of"
[ $((120040 - lost - made)) -le $((freed + repairs - lost)) ] && [ "$made" -ge 1000 ] || complain "drop: $made made, $freed freed, $lost lost, $repairs repairs"
[ "$(grep -c '^malloc(60006)' <(tail -n 200 t.trace))" -ge 10 ] || complain 'drop: what came afterwards is missing'
exit $failed
