# Calls in another process: malloc_trim gives back as much as the kernel counts less afterwards. Allocators answer as they
# answer the program itself. The program waits as long as it asked for.

. "$SOURCE/tests/cmtwatch/common.sh"
tools="$BUILD/tests/cmtwatch"

# start NAME KIND MILLISECONDS [LIBRARY]: starts the program released with the library preloaded. It begins when NAME.in is opened.
start() {
  mkfifo "$1.in"
  env ${4:+LD_PRELOAD=$4} "$tools/released" "$2" "$3" <"$1.in" >"$1.said" 2>"$1.err" 5>&- 6>&- 7>&- &
  pid=$!
}
ready() { until_true "grep -q ready $1.said || ! kill -0 $2"; grep -q ready "$1.said"; }
number() { awk -v name="$2" '$1 == name { print $2 }' "$1"; }  # number FILE NAME
sum_of() { awk -v name="$2:" '$1 == name { print $2 * 1024 }' "/proc/$1/smaps_rollup"; }
near() { local apart=$(($1 - $2)); [ "${apart#-}" -le "$3" ]; }  # near A B APART

# 1. malloc_trim, on a thread that waits for events, sleeps, or computes.
slack=131072  # of stacks, and of pages of libraries that unwinding reads
start epoll epoll 1000; epoll=$pid; exec 5>epoll.in
start sleep sleep 1000; sleep=$pid; exec 6>sleep.in
start spin spin 300; spin=$pid; exec 7>spin.in
for kind in epoll sleep spin; do
  ready $kind ${!kind} || { complain "$kind: $(cat $kind.err)"; continue; }
  before=$(sum_of ${!kind} Anonymous)
  status_of "$tools/remote_calls" trim ${!kind}
  if [ "$status" = 1 ] && grep -qE 'ptrace_scope|CAP_SYS_PTRACE|not permitted' err; then
    echo "skipped: ptrace is not permitted: $(cat err)"
    exec 5>&- 6>&- 7>&-
    exit 77
  fi
  [ "$status" = 0 ] || { complain "$kind: $status $(cat err)"; continue; }
  given=$(number out given_back)
  [ "$given" -ge 15500000 ] && near $given $((before - $(sum_of ${!kind} Anonymous))) $slack ||
    complain "$kind: $given given back, $before before, $(sum_of ${!kind} Anonymous) after"
  near "$(number out resident_after)" "$(sum_of ${!kind} Rss)" $slack || complain "$kind: $(cat out), $(sum_of ${!kind} Rss) after"
  [ "$(number out kept_ns)" -gt 0 ] || complain "$kind: $(cat out)"
done
for kind in epoll sleep spin; do
  until_true "grep -q waited $kind.said || ! kill -0 ${!kind}"
  grep -qx 'waited 0 0' $kind.said || complain "$kind: $(cat $kind.said)"
done
status_of "$tools/remote_calls" trim $sleep
[ "$status" = 0 ] && near "$(number out given_back)" 0 $slack || complain "again: $status $(cat out err)"

# 2. The questions for an allocator. Glibc's malloc has none.
status_of "$tools/remote_calls" ask $epoll
[ "$status" = 0 ] && grep -qx 'allocator none' out || complain "glibc is asked: $status $(cat out err)"
exec 5>&- 6>&- 7>&-
for kind in epoll sleep spin; do wait ${!kind} || complain "$kind: exit $?"; done

for library in libjemalloc.so.2 libtcmalloc_minimal.so.4; do
  name=${library#lib} name=${name%%[._]*}
  if LD_PRELOAD=$library cat /dev/null 2>&1 | grep -q 'cannot be preloaded'; then
    echo "not tested: $library is not installed"
    continue
  fi
  start $name sleep 300 $library
  exec 5>$name.in
  ready $name $pid || complain "$name: $(cat $name.err)"
  status_of "$tools/remote_calls" ask $pid
  [ "$status" = 0 ] && grep -qx "allocator $name" out || complain "$name: $status $(cat out err)"
  until_true "grep -q waited $name.said"
  echo figures >&5
  until_true "grep -q end $name.said"
  [ "$(grep -c '\.' $name.said)" -ge 5 ] || complain "$name says $(cat $name.said)"
  grep '\.' $name.said | while read -r line; do grep -qxF "$line" out || echo "$line"; done >different
  [ ! -s different ] || complain "$name: the program says $(cat different), and we read $(cat out)"
  before=$(sum_of $pid Rss)
  echo purge >&5
  until_true "grep -q purged $name.said"
  fall=$((before - $(sum_of $pid Rss))) returnable=$(number out returnable)
  [ "$returnable" -ge 10000000 ] && near $fall $returnable $((returnable / 20)) || complain "$name: $returnable returnable, $fall returned"
  grep -qx 'waited 0 0' $name.said || complain "$name: $(cat $name.said)"
  exec 5>&-
  wait $pid || complain "$name: exit $?"
done

# 3. One line reports the reason for a refusal.
refused() {  # PID PATTERN
  status_of "$tools/remote_calls" trim "$1"
  [ "$status" = 1 ] && [ "$(wc -l <err)" = 1 ] && grep -qE "$2" err || complain "$2: $status $(cat out err)"
}
refused $pid "there is no process $pid$"
sleep 1000 &
kill -STOP $!
until_true "grep -q '^State:.T' /proc/$!/status"
refused $! "process $! \(.*\) is stopped by a signal: let it go on first \(kill -CONT\)$"
kill -KILL $!
if echo 'int main(void) { for (;;) __builtin_ia32_pause(); }' >spin.c && cc -static spin.c -o static.out 2>/dev/null; then
  ./static.out &
  until_true "grep -q static.out /proc/$!/maps"
  refused $! 'is linked statically: it exports no function of its malloc that could be called$'
  kill -KILL $!
fi
exit $failed
