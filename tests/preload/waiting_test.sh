# Attach, its end, and a pause of cmtwatch leave every system call that waits as it was: none ends with EINTR or too early.

. "$SOURCE/tests/waiting.sh"
failed=0
complain() { echo "$*" >&2; failed=1; }
started=()
trap 'kill -KILL "${started[@]}" 2>/dev/null || true' EXIT
waiting=$BUILD/tests/preload/waiting_calls

# begin CALL...: the program waits in these calls; its pid is $target
begin() {
  rm -f said
  mkfifo said
  "$waiting" "$@" >said 2>early &
  target=$!
  started+=("$target")
  exec 4<said
  read -r answer <&4 && [ "$answer" = ready ] || complain "the program says '$answer'"
}
# end WHAT: no call was disturbed
end() {
  kill -TERM "$target"
  cat <&4 >counts
  exec 4<&-
  wait "$target" || complain "$1: $(grep -v ' 0 0 [0-9]*$' counts) $(cat early)"
}
attach() {
  status=0
  cmttrace --attach="$target" --duration=1ms -o w.cmt >out 2>err </dev/null 4<&- || status=$?
  [ "$status" = 0 ] || complain "attach: $(cat err)"
}

begin pause
attach
if [ "$status" = 125 ] && grep -qE 'ptrace_scope|CAP_SYS_PTRACE' err; then
  echo "skipped: $(cat err)"
  exit 77
fi
end 'the first attach'

# Each call by the only thread: this has to make our calls.
mapfile -t all < <("$waiting" --list)
alone=(epoll_wait epoll_pwait2 sigtimedwait semtimedop mq_timedreceive nanosleep:1000000 recv:1000000)
timed=(epoll_wait:300 poll:300 nanosleep:300)
rounds=1
if [ -n "${CMT_DAILY:-}" ]; then
  alone=()
  for call in "${all[@]}"; do alone+=("$call" "$call:1000000"); done
  timed=()
  for call in epoll_wait epoll_pwait epoll_pwait2 poll ppoll select pselect semtimedop sigtimedwait io_getevents \
    io_uring_enter nanosleep clock_nanosleep futex recv accept connect; do timed+=("$call:300"); done
  rounds=100
fi
for call in "${alone[@]}"; do
  begin "$call"
  for ((round = 0; round < rounds; round++)); do attach; done
  end "$call alone, attached to"
done

# All calls at once, and some that end by their timeout again and again.
begin read "${all[@]}" "${timed[@]}"
for ((round = 0; round < rounds; round++)); do
  attach
  cmtwatch get --pause --count=3 --interval=1ms --max-cost=100 --metric=rss "$target" >out 2>err || complain "a pause: $(cat err)"
done
end 'all calls'
exit $failed
