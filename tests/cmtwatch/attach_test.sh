# cmtwatch get --trace and record --trace give resident and live bytes of a running process at the same moments.

. "$SOURCE/tests/cmtwatch/common.sh"
command -v cc >/dev/null || { echo "skipped: no C compiler"; exit 77; }
cc -O1 -o asker "$SOURCE/tests/cmtwatch/asker.c" || { echo "skipped: the C compiler does not work"; exit 77; }
unset CMTTRACE_WAIT

start() {
  rm -f at.* go.*
  ./asker late &
  target=$!
  until_true '[ -e at.0 ]'
}
# finish: lets the target go on to its own end, and checks that it is neither recorded nor traced.
finish() {
  until_true "grep -q '^TracerPid:.0$' /proc/$target/status"
  status_of cmttrace --detach="$target"
  [ "$status" = 125 ] && grep -q 'is not recorded by an attach$' err || complain "not let go of: $status $(cat err)"
  : >go.0; : >go.1; : >go.2
  status=0; wait "$target" || status=$?
  [ "$status" = 3 ] || complain "the target's exit: $status"
}

start
status_of cmttrace --attach="$target" --duration=1ms -o probe.cmt
if [ "$status" = 125 ] && grep -qE 'ptrace_scope|CAP_SYS_PTRACE' err; then
  cat err >why
  finish
  echo "skipped: $(cat why)"
  exit 77
fi
finish

# lead SIGNAL OPTION...: lets the target go on from step to step when some samples were taken at it, and then ends cmtwatch.
lead() {
  start
  rm -f lines page.html
  mkfifo lines
  local begin when watcher left1=5 left2=5 made1='' made2=''
  begin=$(micros "$EPOCHREALTIME")
  cmtwatch get --interval=5ms --max-cost=100 --metric=rss --plot=page.html -o lines "${@:2}" "$target" 2>err 7>lines &
  watcher=$!
  while read -r line; do
    last=$line
    sample_time "$begin" "$line" || continue
    : >go.0
    [ -z "$made1" ] && [ -e at.1 ] && made1=$(made_at at.1)
    [ -z "$made2" ] && [ -e at.2 ] && made2=$(made_at at.2)
    [ -n "$made1" ] && [ "$when" -gt "$made1" ] && left1=$((left1 - 1))
    [ "$left1" = 0 ] && : >go.1
    [ -n "$made2" ] && [ "$when" -gt "$made2" ] && left2=$((left2 - 1))
    [ "$left2" = 0 ] && kill -"$1" $watcher
  done <lines
  status=0; { wait $watcher || status=$?; } 2>/dev/null
}

lead INT --trace=a.cmt
[ "$status" = 0 ] && ! grep -qvE '^cmtwatch get: (control group |.*built without uPlot)' err || complain "Ctrl-C: $status $(cat err)"
echo "$last" | grep -qE '^at the peak: [0-9.]+ [KM]iB live in [0-9,]+ blocks asked for since the attach; .* is other memory, with the blocks from before; [0-9,]+ events in a\.cmt, nothing was lost; collecting took [0-9.]+ % of a processor$' ||
  complain "the last line: $last"
sed -n 's/.*id="numbers">//; /"schema": "cmt.watch\/1"/,/^<\/script>/p' page.html | sed '/^<\/script>/d; 1s/^/{/' >numbers.json
jq -e --argjson pid "$target" '
  def about(bytes): . >= bytes and . < bytes + 200000;
  (.samples | all(.live_bytes != null)) and
  ([.samples[] | select((.live_bytes | about(10000000)) and .live_blocks >= 1000)] | length) >= 3 and
  ([.samples[-3:][] | select(.live_bytes | about(1000000))] | length) == 3 and
  (.traced.traces | length) == 1 and (.traced.traces[0] | .path == "a.cmt" and .pid == $pid and .whole and .begin_ns < 0) and
  .traced.events_lost_or_in_doubt == 0' numbers.json >/dev/null ||
  complain "inside and outside: $(jq -c '[.traced, .peak, .samples[-1]]' numbers.json)"
finish

# If cmtwatch is killed, cmttrace still detaches from the target.
lead KILL --trace=k.cmt
[ "$status" = 137 ] || complain "killed: $status"
finish
until_true 'trace2cmt --verify k.cmt >verified'

# record writes a trace next to the recording, and both state the same clock.
start
cmtwatch record --trace=r.cmt --interval=10ms -o r.db "$target" >out 2>err &
watcher=$!
until_true '[ "$(moments r.db)" -ge 1 ]'
: >go.0
until_true '[ -e at.1 ]'
kill -INT $watcher
wait $watcher || complain "record: exit $? $(cat err)"
grep -qE '^cmtwatch record: r\.cmt: [0-9,]+ allocations by 1 thread, ' err || complain "record: $(cat err)"
finish
trace2cmt --verify r.cmt >verified || complain "record: $(cat verified)"
began=$(trace2cmt --info r.cmt | sed -n 's/^ *start_monotonic_ns *//p')
[ "$(ask r.db "select value from about where key = 'start_monotonic_ns'")" -le "${began:-0}" ] || complain "record: begins behind the trace, at ${began:-an unknown time}"

# One line reports the reason why a process cannot be attached to.
if echo 'int main(void) { for (;;) __builtin_ia32_pause(); }' >spin.c && cc -static spin.c -o static.out 2>/dev/null; then
  ./static.out &
  until_true "grep -q static.out /proc/$!/maps"
  for words in 'get --trace' 'record --trace -o s.db'; do
    status_of cmtwatch $words $!
    [ "$status" = 1 ] && [ "$(wc -l <err)" = 1 ] && grep -q 'is linked statically: nothing can be loaded into it' err || complain "$words: $status $(cat err)"
  done
  kill -KILL $!
fi
exit $failed
