# Pools that the program reports, by heaptrack's functions as three sorts of programs find them, and by cmttrace.h.
program=$BUILD/tests/preload/pools
failed=0
complain() { echo "pools: $*" >&2; failed=1; }
# record OPTIONS... -- WORDS...: the program writes whether it has found functions for pools to "out".
record() {
  rm -f t.cmt t.*.cmt
  CMTTRACE_WAIT=1 cmttrace -o t.cmt "$@" >out 2>messages || complain "$*: $(cat messages)"
}
# sums OPTIONS...: blocks that were made, their bytes, and blocks and bytes that are live at the end.
sums() {
  lifetimes --by=function --json "$@" 2>/dev/null |
    jq -r '.total | "\(.allocated_blocks) \(.allocated_bytes) \(.end_live_blocks) \(.end_live_bytes)"'
}

record -- "$program" weak
malloc=$(sums t.cmt)
for how in weak next library "plugin $BUILD/tests/preload/libpool_plugin.so"; do
  record --pool=heaptrack -- "$program" $how
  [ "$(cat out) $(sums --pool=heaptrack t.cmt)" = 'found 12 355 1 100' ] || complain "$how: $(cat out) $(sums --pool=heaptrack t.cmt)"
  [ "$how" != weak ] || [ "$(sums t.cmt)" = "$malloc" ] || complain "sums of malloc: $malloc, $(sums t.cmt)"
  lifetimes --by=function --pool=heaptrack --json t.cmt 2>/dev/null | jq -r '.contributors[] | "\(.name) \(.self.allocated_blocks)"' | sort >functions
  [ "$(uname -m)" != x86_64 ] || [ "$(grep -c '^make_node 10$' functions)" = 1 ] || complain "$how: the callers: $(cat functions)"
  # The functions keep frame pointers, so the tracer's frame has to be there when the stack is captured.
  lifetimes --folded --pool=heaptrack t.cmt >stacks 2>/dev/null
  [ "$(uname -m)" != x86_64 ] || grep -q 'main;.*make_node' stacks || complain "$how: stacks are cut: $(cat stacks)"
done
record --pool=own -- "$program" library
[ "$(cat out)" = none ] || complain "functions of heaptrack that nobody asked for"

record --pool=own -- "$program" named
[ "$(sums --pool=nodes t.cmt)" = '12 355 1 100' ] || complain "named: $(sums --pool=nodes t.cmt)"
[ "$(sums t.cmt)" = "$malloc" ] || complain "sums of malloc: $malloc, $(sums t.cmt)"
lifetimes --by=function --pool=nodes --csv t.cmt 2>/dev/null | cut -d , -f 1 | grep '^"*node_made"*$' >out || [ "$(uname -m)" != x86_64 ] ||
  complain "named: the caller"
trace2cmt --info t.cmt | grep '^ *pools  *nodes$' >out || complain "--info: no pool"
[ "$(trace2cmt --info --json t.cmt | jq -c .pools)" = '["nodes"]' ] || complain "--info --json: no pool"
cmtreport --pool=nodes --json t.cmt 2>/dev/null | grep '"allocated_bytes": 355' >out || complain "cmtreport: other figures"
lifetimes --pool=node t.cmt 2>messages && complain "a pool that is not there"
grep 'no events of pool node; the pools are nodes$' messages >out || complain "a pool that is not there: $(cat messages)"
record --pool=own --keep=1min --usable --stacks-of-frees --time -- "$program" named
[ "$(sums --pool=nodes t.cmt)" = '12 355 1 100' ] || complain "with other options: $(sums --pool=nodes t.cmt)"
record --pool=heaptrack -- "$program" named
[ "$(cat out)" = none ] || complain "own pools that nobody asked for"
[ "$("$program" named)" = none ] || complain "own pools without a tracer"

record --pool=own --calls -- "$program" threads
trace2cmt --to=text t.cmt >t.trace
/usr/bin/python3 - t.trace <<'END_OF_CHECK' || complain "threads: wrong pairs"
import re, sys
made, threads, ended = {}, {}, 0
for line in open(sys.argv[1]):
    if found := re.match(r'pool_malloc\((\d+), "nodes"\) = <(\d+)>(?: thread=(\d+))?', line):
        assert threads.setdefault(found[1], found[3]) == found[3], line
        made[found[2]] = found[3]
    elif found := re.match(r'pool_free\(<(\d+)>, "nodes"\)(?: thread=(\d+))?', line):
        assert made.pop(found[1]) == found[2], line
        ended += 1
assert ended == 20000 and not made and len(set(threads.values())) == 4, (ended, len(made), threads)
END_OF_CHECK
! grep -E 'lost or in doubt|unknown blocks' messages >&2 || complain "threads: contradictions"

record --pool=own -- "$program" misuse
for said in '2 ends of unknown blocks of pools, which are left out' '1 block of pools made at the address of a live one' \
  '9 pools not recorded, as there are too many'; do
  grep "$said" messages >out || complain "misuse: not said: $said: $(cat messages)"
done
[ "$(sums --pool=nodes t.cmt)" = '3 21474836484 1 21474836480' ] || complain "misuse: $(sums --pool=nodes t.cmt)"
[ "$(trace2cmt --info --json t.cmt | jq '.pools | length')" = 61 ] || complain "misuse: other pools"

record --pool=own --follow=yes -- "$program" fork
[ "$(sums --pool=nodes t.cmt)" = '1 1 0 0' ] || complain "a parent: $(sums --pool=nodes t.cmt)"
[ "$(sums --pool=nodes t.*.cmt) $(sums --pool=own t.*.cmt)" = '1 2 1 2 1 3 1 3' ] || complain "a child: $(sums --pool=nodes t.*.cmt)"
! grep 'unknown blocks' messages >&2 || complain "a child's inherited block"

# refused TEXT OPTIONS...: wrong use, in a line.
refused() {
  cmttrace -o t.cmt "${@:2}" >out 2>messages && status=0 || status=$?
  [ "$status" = 125 ] && grep -- "$1" messages >out || complain "not refused: ${*:2}: $status $(cat messages)"
}
refused 'cannot go with --attach' --attach=1 --pool=own
refused 'cannot go with --attach' --attach=1 --pool=python,heaptrack
refused 'several with commas' --pool=nodes -- "$program"
refused 'does not go with' --sample-bytes=64K --pool=own -- "$program"
CMTTRACE_POOL=own,nodes CMTTRACE_OUT=x.cmt LD_PRELOAD=$TRACER "$program" named >out 2>messages
grep "CMTTRACE_POOL cannot be 'own,nodes'" messages >out || complain "CMTTRACE_POOL: $(cat messages)"
exit $failed
