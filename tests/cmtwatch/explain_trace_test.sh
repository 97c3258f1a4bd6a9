# cmtwatch explain --trace names the calls whose blocks keep free memory, and the one that raised malloc's threshold.

. "$SOURCE/tests/cmtwatch/common.sh"

[ "$(uname -m)" = x86_64 ] || { echo "skipped: explain reads x86-64 only"; exit 77; }
command -v cc >/dev/null || { echo "skipped: no C compiler"; exit 77; }
cc -g -o keepers "$SOURCE/tests/cmtwatch/keepers.c" || { echo "skipped: the C compiler does not work"; exit 77; }
line_of() { grep -n "static void.*$1(" "$SOURCE/tests/cmtwatch/keepers.c" | cut -d : -f 1; }

# begin COMMAND...: starts it; `pid` is the number of the process that waits in the end.
begin() {
  rm -f said
  "$@" >said 2>started &
  parent=$!
  until_true '[ -s said ] || ! kill -0 $parent'
  pid=$(cat said)
  [ -n "$pid" ] || { echo "$*: $(cat started)" >&2; exit 1; }
}
end() { kill "$pid"; wait "$parent" 2>/dev/null || true; }
# look TRACE: leaves malloc's figures in look.json. (jq -e accepts an empty file.)
look() {
  status_of cmtwatch explain --json --trace="$1" "$pid"
  jq '.processes[0].malloc' out >look.json
}
is() { [ "$(jq "$1" look.json)" = true ]; }
holds() { is "$1" || complain "$1: $(cat look.json err)"; }

begin cmttrace -o app.cmt -- ./keepers
may_read "$pid" || { echo "skipped: processes may not be read here"; end; exit 77; }

# The trace is being written: wait until the collector has come to the end.
until_true 'look app.cmt && is ".trace | .live_blocks >= 1200 and .found_blocks == .live_blocks"'
holds ".keepers_by_site[0] | .site == \"load_row (keepers.c:$(line_of load_row))\" and .blocks == 1000 and
  .live_bytes == 112000"
holds ".keepers_by_site[1] | .site == \"open_session (keepers.c:$(line_of open_session))\" and .blocks == 200 and
  .live_bytes == 64000"
holds '[.keepers_by_site[0:2][].kept_bytes] == [.keepers[] | select(.chunk_bytes == (112, 320)).kept_bytes]'
holds '([.keepers_by_site[].kept_bytes] | add) == .trace.kept_bytes and .trace.known_kept_bytes == .trace.kept_bytes'
# The program's thread-local array is so large that malloc's variables are far from the thread's control block.
holds '.thread_cache_bytes > 0 and .live_blocks == .trace.found_blocks and .is_exact'
holds ".trace | .matches and (.threshold_raised_by | .site == \"read_file (keepers.c:$(line_of read_file))\" and
  .bytes == 3000000 and .time_ns > 0)"
# overhead follows the threshold by the trace alone, and comes to the value that malloc has.
until_true 'overhead --json app.cmt >places.json 2>err'
[ "$(jq .mmap_threshold.bytes places.json)" = "$(jq .mmap_threshold_bytes look.json)" ] ||
  complain "another threshold: $(jq .mmap_threshold places.json) $(cat look.json)"

status_of cmtwatch explain -v --trace=app.cmt "$pid"
tr -s ' \n' ' ' <out >words
grep -q 'By call: load_row (keepers.c:[0-9]*): 1,000 blocks keep [0-9.]* MiB; open_session' words &&
  grep -q 'app.cmt, of process [0-9]*, has 1,20[0-9] live blocks at its end; 100.0 % of them are live here' words &&
  grep -q 'The block: 2.86 MiB of read_file (keepers.c:[0-9]*), freed [0-9.]* [mu]*s after the recording began' words &&
  grep -q '^load_row (keepers.c:[0-9]*)  *1,000 ' out || complain "text: exit $status, $(cat out err)"

# A trace without some of the blocks: the rest is named, and the share is smaller.
trace2cmt app.cmt -o whole.trace 2>err || complain "trace2cmt: $(cat err)"
grep -vE ' malloc\((300|3000000)\)|^malloc\((300|3000000)\)' whole.trace >part.trace
look part.trace
holds '.keepers_by_site[0].blocks == 1000 and
  (.keepers_by_site[1] | .site == "not in the trace" and .blocks == 200 and .live_bytes == 64000) and
  .keepers_by_site[1].kept_bytes == .trace.kept_bytes - .trace.known_kept_bytes and .trace.threshold_raised_by == null'
status_of cmtwatch explain --trace=part.trace "$pid"
tr -s ' \n' ' ' <out | grep -q 'The trace does not have that free' || complain "part: $(cat out err)"

# A trace without addresses, or without call stacks, is refused.
sed 's/[0-9a-f]*<\([0-9]*\)>/<\1>/g' whole.trace >bare.trace
status_of cmtwatch explain --trace=bare.trace "$pid"
[ "$status" = 1 ] && grep -q 'bare.trace: addresses were not recorded' err || complain "no addresses: exit $status, $(cat out err)"
printf 'malloc(100) = 5000<1>\n' >calls.trace
status_of cmtwatch explain --trace=calls.trace "$pid"
[ "$status" = 1 ] && grep -q 'calls.trace: call stacks were not recorded' err || complain "no stacks: exit $status, $(cat err)"
status_of cmtwatch explain --trace=absent.cmt "$pid"
[ "$status" = 1 ] && grep -q 'absent.cmt' err || complain "an absent trace: exit $status, $(cat out err)"
for also in --recursive --brief --watch=1s "$pid"; do
  status_of cmtwatch explain --trace=app.cmt "$also" "$pid"
  [ "$status" = 2 ] && [ "$(wc -l <err)" = 2 ] || complain "$also: exit $status, $(cat out err)"
done
end

# The trace of another process names no call.
begin ./keepers
look app.cmt
holds '.keepers_by_site == [] and (.trace | (.matches | not) and .found_blocks * 10 < .live_blocks and
  .threshold_raised_by == null)'
status_of cmtwatch explain --trace=app.cmt "$pid"
tr -s ' \n' ' ' <out | grep -q 'So the trace is of another process, or of an earlier time, and no call is named' &&
  ! grep -q load_row out || complain "another process: exit $status, $(cat out err)"
end

# A program whose malloc is not glibc's: the trace is not used, and the report says so.
if other=$(ls /usr/lib/*/libjemalloc.so.2 2>/dev/null); then
  begin env LD_PRELOAD="$other" ./keepers
  status_of cmtwatch explain --trace=app.cmt "$pid"
  [ "$status" = 0 ] && tr -s ' \n' ' ' <out | grep -q 'app.cmt is not used: only in glibc' ||
    complain "another malloc: exit $status, $(cat out err)"
  end
fi

# Thread-local variables so large that no cache is looked for below them: the report says so.
cat >far.c <<'CODE'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static __thread volatile char far[6 << 20];
int main(void) {
  far[0] = 1;
  free(malloc(10));
  printf("%d\n", getpid());
  fflush(stdout);
  for (;;) pause();
}
CODE
cc -o far far.c || complain "far.c is not compiled"
begin ./far
status_of cmtwatch explain "$pid"
[ "$status" = 0 ] && tr -s ' \n' ' ' <out | grep -q 'Not exact: the caches of threads were not found: what is in them' ||
  complain "large thread-local variables: exit $status, $(cat out err)"
end
exit $failed
