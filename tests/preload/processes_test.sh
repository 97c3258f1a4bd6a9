# Each process has a file of its own; a child of vfork has none until it calls exec. A program that closes all descriptors is
# still traced.

children=$BUILD/tests/preload/children
failed=0
sizes() { grep -aoE '^malloc\(500[0-9]*\)' "$1" | uniq | tr -dc '0-9\n' | tr '\n' ' '; }
# traced WHAT...: in an empty folder
traced() {
  rm -rf t
  mkdir t
  (cd t && LD_PRELOAD=$TRACER "$children" "$@") || { echo "$*: exit $?" >&2; failed=1; }
  /usr/bin/python3 "$SOURCE/tests/preload/checks/trace.py" t/*.trace >/dev/null || failed=1
}
# expect WHAT SIZES...: the traces, in the order of their names, have these blocks
expect() {
  what=$1 found=
  shift
  for file in $(ls -v t/*.trace); do found+="$(sizes "$file")/ "; done
  [ "$found" = "$* / " ] || { echo "$what: $found, not $*" >&2; failed=1; }
}

traced forks
expect forks 50000 50001 50005 / 50002 50003 / 50004
traced vforks
expect vforks 50001 50002 50003 50004 / 50009 / 50009
traced vfork_first
expect vfork_first 50001 / 50002 50003 50004 / 50009
for how in closefrom close_range loop overwrite; do
  traced closes $how
  expect "closes $how" 50001 50002 50003
done
traced lonely
traced all
expect all 50001 50002 50003
# The collector reads these two files of the parent, to see whether it waits for all its children.
if [ -r /proc/self/syscall ] && [ -r /proc/$$/task/$$/children ]; then
  traced all by_syscall
  expect 'all by_syscall' 50001 50002 50003
else
  echo 'not tested: a wait for all children, because /proc/PID/syscall or /proc/PID/task/TID/children cannot be read'
fi
traced debugs
expect debugs 50001 / 50009
[ "$failed" = 0 ]
