# However a process ends, its trace has everything that it did before.

. "$SOURCE/tests/waiting.sh"
endings=${ENDINGS:-$BUILD/tests/preload/endings}
failed=0
# ended HOW STATUS SIZE...: the trace has these blocks, in this order, and an end line.
ended() {
  how=$1 wanted=$2 status=0
  shift 2
  rm -f t*.trace
  LD_PRELOAD=$TRACER CMTTRACE_OUT=t.trace "$endings" "$how" 2>err || status=$?
  trace2cmt <t.trace >t.cmt 2>err || true  # who reads a trace is not kept waiting by other programs' work
  until_true "grep -q '^#cmt end=' t.trace"
  [ "$status" = "$wanted" ] || { echo "$how: exit $status" >&2; failed=1; }
  sizes "$how" t.trace "$@"
  /usr/bin/python3 -c "import sys; sys.path.insert(0, '$SOURCE/tests/preload/checks')
from trace import Trace
Trace('t.trace', whole=$whole)" || { echo "$how: not as it should end" >&2; failed=1; }
}
sizes() {
  how=$1 file=$2
  shift 2
  found=$(grep -aoE '^malloc\(6000[0-9]\)' "$file" | tr -dc '0-9\n' | tr '\n' ' ')
  [ "$found" = "$* " ] || { echo "$how: $file has $found, not $*" >&2; failed=1; }
}

whole=True
ended exit 3 60001 60002 60003 60004
ended _exit 3 60001 60002
ended _Exit 3 60001 60002
ended quick_exit 3 60001 60002 60005
ended handler 7 60001 60002 60006
ended abort 134 60001 60002
ended assert 134 60001 60002
for exec in execl execlp execle execvp; do
  ended $exec 3 60001 60002
  sizes $exec t.2.trace 60001 60002 60003 60004
done
ended execv 3 60001 60002 60007 60008
sizes execv t.2.trace 60001 60002 60003 60004

# These programs could not wait for their traces to be whole.
ended system_call 3 60001 60002
ended kill 137 60001 60002
grep -qx 'mark("ended by SIGKILL")' t.trace || { echo "kill: no mark" >&2; failed=1; }
ended segv 139 60001 60002
whole=False

# A program waits for its trace only with CMTTRACE_WAIT: here the collector is stopped until the program has ended.
CMTTRACE_WAIT= LD_PRELOAD=$TRACER CMTTRACE_OUT=w.trace perl -I"$SOURCE/tests/preload/checks" -Mcollector -e '
  my @blocks = map { "x" x $_ } 1..500;
  my $collector = collector("w.trace");
  kill STOP => $collector;
  open F, ">", "stopped";
  print F $collector;'
! grep -q '^#cmt end=' w.trace || { echo "no wait: the trace has ended" >&2; failed=1; }
kill -CONT $(cat stopped)
# A reader of the trace waits for its end. Where the program has been for a second the collector has to ask for that again.
/usr/bin/python3 - "$(cat stopped)" <<'END'
import fcntl, os, sys
awaited = 2**61 + 1
with open('w.trace') as file:
    while os.path.exists(f'/proc/{sys.argv[1]}'):
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, awaited)
        except BlockingIOError:
            break
        fcntl.lockf(file, fcntl.LOCK_UN, 1, awaited)
END
trace2cmt <w.trace >w.cmt
grep -q '^#cmt end=' w.trace || { echo "no wait: the trace has not ended" >&2; failed=1; }
# A recording ends with its program, however long its events are encoded afterwards: a line of progress is written then.
taskset -c "$(taskset -cp $$ | sed 's/.*[ ,-]//')" env CMTTRACE_WAIT= CMTTRACE_STATUS=late CMTTRACE_OUT=late.trace LD_PRELOAD=$TRACER \
  perl -e '[$_] for 1..1000000'
/usr/bin/python3 - <<'END' || failed=1
import re, time
progress_ns, text = 0, ''
while ' time_ns=' not in text:
    time.sleep(0.01)
    with open('late') as file: text = file.read()
    if progress_ns == 0 and ' encoded=' in text: progress_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
ended_ns = sum(int(re.search(name + r'=(\d+)', text)[1]) for name in (' start_ns', ' time_ns'))
assert progress_ns == 0 or ended_ns < progress_ns, f'{ended_ns - progress_ns} ns too late:\n{text}'
END
rm late.trace
[ "$failed" = 0 ]
