# While a program runs, its trace is encoded by a thread that gets only idle processors (SCHED_IDLE), and by another one where
# somebody waits for it.

. "$SOURCE/tests/waiting.sh"
failed=0
complain() { echo "$*" >&2; failed=1; }
mkfifo in out

# begin VARIABLE...: starts a program that makes as many blocks as a line of its input says
begin() {
  rm -f t.trace
  env LD_PRELOAD="$TRACER" CMTTRACE_OUT=t.trace CMTTRACE_CONTROL=control "$@" "$BUILD/tests/preload/marked" blocks <in >out &
  program=$!
  exec 3>in 4<out
  make 10
  made=10
  collector=$(perl -I"$SOURCE/tests/preload/checks" -Mcollector -e 'print collector("t.trace")')
}
make() { echo "$1" >&3; read -r said <&4; }
end() {
  exec 3>&- 4<&-
  wait $program || complain "exit $?"
  [ "$(grep -c '^malloc(60006)' t.trace)" = "$made" ] || complain "$(grep -c '^malloc(60006)' t.trace) blocks, not $made"
}
# policies: of the collector's threads, with their names: 0 is SCHED_OTHER, 3 SCHED_BATCH (the page watcher), 5 SCHED_IDLE
policies() { sed 's/^[0-9]* (\(.*\)) \(.*\)/\2 \1/' "/proc/$collector/task"/*/stat | awk '{ print $39, $NF }' | sort; }
# idle_turns: how often the idle thread has left a processor
idle_turns() {
  for task in "/proc/$collector/task"/*; do
    [ "$(cat "$task/comm")" != encode-idle ] || cat "$task/status"
  done | awk '/ctxt_switches:/ { sum += $2 } END { print sum + 0 }'
}
# encode [COMMAND]: makes blocks, gives the command and waits until the blocks are in the file. Sets `turns`, of the idle thread.
encode() {
  local before
  before=$(idle_turns)
  make 100
  made=$((made + 100))
  [ -z "${1:-}" ] || echo "$1" >control
  until_true "[ \"\$(grep -c '^malloc(60006)' t.trace)\" = $made ]"
  turns=$(($(idle_turns) - before))
}
# encode_until CONDITION [COMMAND]: encodes until the turns are so. A step that began before somebody waited is still finished.
encode_until() {
  local give_up=$((SECONDS + 240))
  until encode "${2:-}" && [ "$turns" "$1" 0 ]; do
    [ "$SECONDS" -lt "$give_up" ] || { complain "${2:-nothing} asked for: $turns turns of the idle thread, never $1 0"; break; }
  done
}

begin
until_true 'policies | grep -q "^5 encode-idle$"'
[ "$(policies | grep -c '^5 ')" = 1 ] || complain "policies: $(policies)"
encode_until -ne
encode_until -eq flush
# Somebody reads: the lock of cmt's tools.
mkfifo release locked
/usr/bin/python3 -c '
import fcntl, struct
file = open("t.trace")
fcntl.fcntl(file, 37, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, (1 << 61) + 2, 1, 0))  # F_OFD_SETLK
open("locked", "w").close()
open("release").read()' &
: <locked
encode_until -eq
: >release
encode_until -ne
end

# With rings from which a trace can be recovered, a thread may only overwrite what the trace has.
begin CMTTRACE_RINGS=rings
encode
[ "$(policies | grep -c '^5 ')" = 0 ] || complain "rings: policies: $(policies)"
end
exit $failed
