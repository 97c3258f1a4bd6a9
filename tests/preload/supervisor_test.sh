# The supervisor of a collector: a program that inherits orphans does not see it, nor does one that was executed. A
# program whose supervisor and collector are killed goes on at once.

. "$SOURCE/tests/waiting.sh"
programs=$BUILD/tests/preload
failed=0
complain() { echo "$*" >&2; failed=1; }

for how in wait waitpid wait3 wait4 waitid; do
  said=$(LD_PRELOAD=$TRACER CMTTRACE_OUT=o.%p.cmt "$programs/orphans" $how) || complain "$how: exit $?"
  [ "$said" = '6 children, then No child processes' ] || complain "$how: $said"
  [ "$(ls o.*.cmt | wc -l)" = 7 ] || complain "$how: $(ls o.*)"
  rm o.*
done

# The kernel sends SIGCHLD for a child whose parent has executed another program since it was born.
said=$(LD_PRELOAD=$TRACER CMTTRACE_OUT=e.%p.cmt "$programs/orphans" exec) || complain "exec: exit $?"
[ "$said" = $'SIGCHLD 0\n1 child' ] || complain "exec: $said"
[ "$(ls e.*.cmt | wc -l)" = 2 ] || complain "exec: $(ls e.*)"

# Namespaces that a process gets only if it shares its memory with no other: as untraced, and nothing is lost.
if [ "$("$programs/orphans" alone)" = $'setns 0\nunshare 0' ]; then
  said=$(LD_PRELOAD=$TRACER CMTTRACE_OUT=a.cmt CMTTRACE_STATUS=status "$programs/orphans" alone) || complain "alone: exit $?"
  [ "$said" = $'setns 0\nunshare 0' ] || complain "alone: $said"
  until_true 'grep -q " lost=" status' # the program does not wait for its collector
  grep -q ' lost=0 ' status || complain "alone: $(cat status)"
  for size in 300 400; do
    [ "$(trace2cmt --to=text a.cmt | grep -c "^malloc($size)")" = 100000 ] || complain "alone: blocks of $size are missing"
  done
else
  echo 'not tested: setns and unshare, which this may not call'
fi

# The collector's end is what the program says, and not that it waited in vain for a minute.
mkfifo in
LD_PRELOAD=$TRACER CMTTRACE_OUT=f.cmt "$programs/orphans" flood <in 2>err &
program=$!
exec 3>in
collector=$(perl -I"$SOURCE/tests/preload/checks" -Mcollector -e 'print collector("f.cmt")')
kill -KILL "$(awk '/^PPid:/ { print $2 }' "/proc/$collector/status")" "$collector"
until_true '[ -s err ]'
exec 3>&-
wait $program || complain "flood: exit $?"
[ "$(cat err)" = 'libcmttrace: the collector has ended; the program goes on untraced' ] || complain "said: $(cat err)"
[ "$failed" = 0 ]
