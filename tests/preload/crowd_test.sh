# Ten thousand threads at once: their rings stay within 64 MiB, and no event is lost.

failed=0
complain() { echo "$*" >&2; failed=1; }
rings_bytes() { echo $(($(stat -L -c %b "/proc/$1/fd/3") * 512)); }
mkfifo in
for events in 20 $((${CMTTRACE_STACKS:-0} ? 200 : 1600)); do
  rm -f t.cmt status said
  LD_PRELOAD=$TRACER CMTTRACE_OUT=t.cmt CMTTRACE_WAIT=1 CMTTRACE_STATUS=status "$BUILD/tests/preload/crowd" 10000 $events <in >said &
  program=$!
  exec 3>in
  until [ -s said ]; do sleep 0.05; done
  if grep -q 'no more' said; then
    echo "skipped: $(cat said)"
    exit 77
  fi
  collector=$(perl -I"$SOURCE/tests/preload" -Mcollector -e 'print collector("t.cmt")')
  bytes=$(rings_bytes "$collector")
  echo "$events events a thread: $((bytes >> 20)) MiB"
  # Its head and table are 2 MiB, and those of the stacks as many. Rings whose threads wait while they are read have two
  # pages for a moment, the more of them the busier the machine is; and a stack takes several records.
  [ "$bytes" -le $(((${CMTTRACE_STACKS:-0} ? 112 : 96) << 20)) ] || complain "$events events a thread: $bytes bytes of rings"
  echo >&3
  wait $program || complain "exit $?"
  exec 3>&-
  grep -q ' lost=0 repairs=0 ' status || complain "lost: $(cat status)"
  [ "$(sed -n 's/.* events=\([0-9]*\) .*/\1/p' status)" -ge $((10000 * events)) ] || complain "missing: $(cat status)"
done
exit $failed
