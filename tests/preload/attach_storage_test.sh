# After an attach, a program can load a library that needs all thread-local storage that glibc keeps for later ones. The
# tracer's variables are then in bytes that glibc does not clear for a new thread: no thread takes an ended one's for its
# own. Where these bytes are used, the tracer takes a part of the storage.

. "$SOURCE/tests/waiting.sh"
unset CMTTRACE_WAIT CMTTRACE_STATUS
failed=0
complain() { echo "$*" >&2; failed=1; }
started=()
trap 'kill -KILL "${started[@]}" 2>/dev/null || true' EXIT
library=$BUILD/tests/preload/libstatic_tls.so

start() {  # MODE: the program, whose pid is $target
  rm -f in said
  mkfifo in said
  "$BUILD/tests/preload/many_threads" "$1" <in >said 2>target_err &
  target=$!
  started+=("$target")
  exec 3>in 4<said
}
order() { echo "$1" >&3; read -r answer <&4 || answer=nothing; }
stop() { exec 3>&- 4<&-; wait "$target" || complain "the program's exit: $?"; }
attach() {
  : >err
  cmttrace --attach="$target" "$@" >out 2>err </dev/null 3>&- 4<&- &
  tracer=$!
  started+=("$tracer")
  until_true 'grep -q "records process" err || ! kill -0 $tracer'
  if grep -qE 'ptrace_scope|CAP_SYS_PTRACE' err; then
    echo "skipped: $(cat err)"
    exit 77
  fi
  grep -q 'records process' err || complain "attach $*: $(cat err)"
}
detach() {
  kill -INT "$tracer"
  wait "$tracer" || complain "cmttrace: $? $(cat err)"
}
# counts TRACE BLOCKS THREADS: it has these blocks, of threads that began and ended, each of which it knows
counts() {
  trace2cmt --text "$1" >text
  [ "$(grep -c '^malloc(60007)' text) $(grep -c ^thread_start text) $(grep -c ^thread_exit text)" = "$2 $3 $3" ] ||
    complain "$1: $(grep -c '^malloc(60007)' text) blocks, $(grep -c ^thread_start text) threads, of which $(grep -c ^thread_exit text) ended; not $2, $3"
}

start free
order "load $library"
stop
if [ "$answer" != done ]; then
  echo "skipped: without an attach the library cannot be loaded either: $answer"
  exit 77
fi

start free
order 'threads 3'
attach -o threads.cmt --stacks --follow=yes
order 'threads 200'
order two-generations
order "load $library"
[ "$answer" = done ] || complain "dlopen after an attach: $answer"
order 'threads 100'
detach
order 'threads 3'
attach -o again.cmt
order 'threads 50'
detach
stop
counts threads.cmt 3020 302
counts again.cmt 500 50
child=$(ls threads.*.cmt)
counts "$child" 60 6
for trace in *.cmt; do trace2cmt --verify "$trace" >verified 2>&1 || complain "$trace: $(cat verified)"; done

start occupied
order 'threads 3'
attach -o occupied.cmt
order 'threads 50'
detach
stop
counts occupied.cmt 500 50
exit $failed
