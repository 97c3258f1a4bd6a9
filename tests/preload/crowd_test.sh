# Ten thousand threads at once: once they have been read their rings take less than 96 MiB, and no event is lost. Also
# with more events than a ring holds, of fewer threads where this is not for every day.

. "$SOURCE/tests/waiting.sh"
failed=0
complain() { echo "$*" >&2; failed=1; }
rings_bytes() { echo $(($(stat -L -c %b "/proc/$1/fd/3") * 512)); }
mkfifo in
threads=10000
for events in 20 $((${CMTTRACE_STACKS:-0} ? 200 : 1600)); do
  [ -n "${CMT_DAILY:-}" ] || [ "$events" = 20 ] || threads=2000
  rm -f t.cmt status said
  LD_PRELOAD=$TRACER CMTTRACE_OUT=t.cmt CMTTRACE_WAIT=1 CMTTRACE_STATUS=status "$BUILD/tests/preload/crowd" $threads $events <in >said &
  program=$!
  exec 3>in
  until [ -s said ]; do sleep 0.05; done
  if grep -q 'no more' said; then
    echo "skipped: $(cat said)"
    exit 77
  fi
  collector=$(perl -I"$SOURCE/tests/preload/checks" -Mcollector -e 'print collector("t.cmt")')
  # Its head and table are 2 MiB, and those of the stacks as many. A ring has two pages for a moment if its thread waits
  # while the ring is read. The busier the machine is, the more rings do. A stack takes several records.
  most=$(((${CMTTRACE_STACKS:-0} ? 112 : 96) << 20))
  until_true '[ "$(rings_bytes "$collector")" -le $most ]'
  echo "$events events a thread: $(($(rings_bytes "$collector") >> 20)) MiB"
  echo >&3
  wait $program || complain "exit $?"
  exec 3>&-
  grep -q ' lost=0 repairs=0 ' status || complain "lost: $(cat status)"
  [ "$(sed -n 's/.* events=\([0-9]*\) .*/\1/p' status)" -ge $((threads * events)) ] || complain "missing: $(cat status)"
done
exit $failed
