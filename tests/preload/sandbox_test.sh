# A program that is killed for its next system call is not killed for ours, and its trace is complete. This also proves that
# recording makes no system call.

sandbox=$BUILD/tests/preload/sandbox
failed=0
complain() { echo "$*" >&2; failed=1; }
has() { [ "$(grep -c "^malloc($2)" t.trace)" = "$3" ] || complain "$1: $(grep -c "^malloc($2)" t.trace) blocks of $2, not $3"; }
# within HOW END: the program lives on, and its trace ends so.
within() {
  status=0
  rm -f t.trace
  timeout 120 env LD_PRELOAD="$TRACER" CMTTRACE_OUT=t.trace "$sandbox" "$1" >out 2>err || status=$?
  [ $status = 4 ] && [ "$(cat out)" = alive ] && [ ! -s err ] || complain "$1: exit $status, $(cat err)"
  /usr/bin/python3 "$SOURCE/tests/preload/checks/await_closed.py" t.trace
  trace2cmt --verify t.trace >said || complain "$1: $(cat said)"
  has "$1" 41000 10
  has "$1" 41001 100000
}
status=0
"$sandbox" prctl >out || status=$?
[ $status = 4 ] || { echo "skipped: no seccomp here: exit $status"; exit 77; }

for settings in '0 0' '1 1' ${CMT_DAILY:+'0 1' '1 0'}; do
  export CMTTRACE_WAIT=${settings% *} CMTTRACE_TIME=${settings#* }
  for how in prctl syscall strict clock in_vain; do
    within $how
    [ "$(tail -n 1 t.trace)" = '#cmt end=complete' ] && ! grep -q '^#cmt repairs' t.trace || complain "$how: $(tail -n 2 t.trace)"
  done
done
grep -q '^thread_name("a name that is ")' t.trace || complain 'a name by prctl is missing'
within threads
has threads 41002 300000
within fork
[ "$(sed -n 's/^#cmt repairs=//p' t.trace)" = 200 ] || complain "fork: $(tail -n 3 t.trace)"
exit $failed
