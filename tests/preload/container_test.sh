# The first process of a container: when it ends, the kernel kills all others, the collector too. The tracer gives it no
# child that it would see.

[ "$(unshare -pf --mount-proc echo yes 2>/dev/null)" = yes ] || { echo 'skipped: unshare may not make a process namespace here'; exit 77; }
unset CMTTRACE_WAIT
failed=0
complain() { echo "$*" >&2; failed=1; }
programs=$BUILD/tests/preload
# first COMMAND...: traced, as process 1
first() {
  status=0
  rm -rf t
  mkdir t
  (cd t && unshare -pf --mount-proc env LD_PRELOAD="$TRACER" CMTTRACE_OUT=%n.%p.trace "$@" >../out 2>../err) || status=$?
}
for how in exit _exit quick_exit; do
  first "$programs/endings" $how
  [ $status = 3 ] && [ "$(tail -n 1 t/endings.1.trace)" = '#cmt end=complete' ] || complain "$how: $status $(ls t; tail -n 1 t/*)"
  grep -q '^malloc(60002)' t/endings.1.trace || complain "$how: events are missing"
done
first "$programs/children" lonely
[ $status = 0 ] || complain "a process 1 has children that are not its own: $status"
first "$programs/endings" execv
[ $status = 3 ] && [ "$(cat t/*.trace | grep -c '^malloc(60002)')" = 2 ] || complain "execv: $status $(ls t)"
first bash -c 'x=$(ls /proc | grep -c "^[0-9]"); /bin/true & wait $!; echo $x; exit 5'
[ $status = 5 ] || complain "bash: $status $(cat err)"
for trace in t/*; do [ "$(tail -n 1 "$trace")" = '#cmt end=complete' ] || complain "$trace: $(tail -n 1 "$trace")"; done

# The container is killed from outside. Its rings remain, because they are in a file.
rm -f out
mkfifo in out
unshare -pf --mount-proc env LD_PRELOAD="$TRACER" CMTTRACE_OUT=t.trace CMTTRACE_RINGS=rings "$programs/marked" blocks <in >out 2>err &
exec 3>in 4<out
echo 30000 >&3
read -r said <&4
until first_process=$(pgrep -P $!); do sleep 0.01; done
kill -KILL "$first_process"
exec 3>&- 4<&-
wait $! 2>/dev/null || true
"$BUILD/preload/cmttrace-collector" --recover rings >said || complain "recover: exit $?"
[ "$(grep -c '^malloc(60006)' t.recovered.trace)" = 30000 ] || complain "recovered: $(cat said)"
exit $failed
