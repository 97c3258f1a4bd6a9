# Program and collector are killed together, as a machine or a container is: what was recorded is in the file of the
# rings, or in the trace's.

collector=$BUILD/preload/cmttrace-collector
failed=0
complain() { echo "$*" >&2; failed=1; }
mkfifo in out

# killed FORM BLOCKS...: a program that made these many blocks, in turns, is killed with its collector; its trace is recovered.
killed() {
  form=$1 sum=0
  shift
  rm -f t.* rings said
  LD_PRELOAD=$TRACER CMTTRACE_OUT=t.$form CMTTRACE_RINGS=rings CMTTRACE_TIME=1 "$BUILD/tests/preload/marked" blocks <in >out &
  exec 3>in 4<out
  for blocks in "$@"; do
    echo "$blocks" >&3
    read -r said <&4
    sum=$((sum + blocks))
  done
  until [ -n "$(collector_of "t.$form")" ]; do sleep 0.01; done
  kill -STOP $(collector_of "t.$form")
  kill -KILL $! $(collector_of "t.$form")
  wait $! 2>/dev/null || true
  exec 3>&- 4<&-
  "$collector" --recover rings >said || complain "recover: exit $?"
  trace2cmt --to=text t.recovered.$form >text 2>err || complain "$form: $(cat err)"
  /usr/bin/python3 "$SOURCE/tests/preload/trace.py" --truncated text >/dev/null || complain "$form: a broken trace"
  [ "$(grep -c '^malloc(60006)' text)" = $sum ] || complain "$form $*: $(grep -c '^malloc(60006)' text) blocks, not $sum; $(cat said)"
}
collector_of() { for p in $(pgrep -x cmttrace-collec); do [ "$(readlink /proc/$p/fd/5)" != "$PWD/$1" ] || echo $p; done; }

for form in trace cmt; do
  killed $form 10
  killed $form 1000 60000 5 20000
done

# Where both end as they should, nothing is left.
rm -f t.* rings
echo 5 | LD_PRELOAD=$TRACER CMTTRACE_OUT=t.trace CMTTRACE_RINGS=rings "$BUILD/tests/preload/marked" blocks >said
[ ! -e rings ] && grep -q '^malloc(60006)' t.trace || complain "an ordinary end: $(ls)"

head -c 100000 /dev/zero >rings
status=0
"$collector" --recover rings 2>err || status=$?
[ "$status" = 1 ] && [ "$(cat err)" = 'cmttrace-collector: rings: holds no rings' ] || complain "no rings: $status $(cat err)"
status=0
"$collector" --recover nowhere 2>err || status=$?
[ "$status" = 1 ] && grep -q '^cmttrace-collector: nowhere: No such file' err || complain "no file: $status $(cat err)"
status=0
"$collector" 2>err || status=$?
[ "$status" = 2 ] && [ "$(wc -l <err)" = 2 ] || complain "wrong use: $status $(cat err)"
[ "$failed" = 0 ]
