# A full ring while the collector is stopped. A thread waits and loses nothing; with CMTTRACE_ON_FULL=drop it drops events,
# and counts each.

. "$SOURCE/tests/waiting.sh"
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
# The volume of --rings becomes full while threads begin. Some get no ring then, and the last line counts their
# events.
grows='import os, threading
def work():
    while not os.path.exists("is_full"):
        for i in range(100): bytearray(1000 + i)
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads[:4]: thread.start()
open("up", "w").close()
for thread in threads[4:]: thread.start()
for thread in threads: thread.join()'
fills() {
  mkdir volume
  mount -t tmpfs -o size=20m tmpfs volume
  cmttrace --calls --rings=volume/r -o rings.cmt -- /usr/bin/python3 -c "$grows" 2>err &
  until_true "[ -e up ]"
  ! dd if=/dev/zero of=volume/fill bs=4k 2>/dev/null || complain "the volume is not full"
  touch is_full
  status=0; wait $! || status=$?
  [ "$status" = 0 ] && grep -qE '; (nothing was lost|[0-9,]+ events lost or in doubt)' err ||
    complain "a full volume of rings: exit $status, $(cat err)"
  trace2cmt --verify rings.cmt >verified 2>&1 || complain "a full volume of rings: $(cat verified)"
}
if [ "$(id -u)" != 0 ] || ! unshare -m true 2>/dev/null; then
  echo "not tested: a full volume of rings needs root"
elif command -v cmttrace >/dev/null; then
  export -f fills complain until_true
  export grows
  unshare -m bash -eu -o pipefail -c 'failed=0; fills; exit $failed' || failed=1
fi
exit $failed
