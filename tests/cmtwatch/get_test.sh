# cmtwatch get prints how much memory a process has.

. "$SOURCE/tests/cmtwatch/common.sh"

# Two processes share 100 MB and own 40 and 10: their proportional sets are 90 and 60, and 150 in all.
hold 100 40 10
near() { awk -v is="$1" -v want="$2" 'BEGIN { exit !(is >= want * 1e6 && is < (want + 12) * 1e6) }'; }
pss=$(cmtwatch get --bytes "$parent"); near "$pss" 90 || complain "the parent's PSS: $pss"
pss=$(cmtwatch get --bytes "$child"); near "$pss" 60 || complain "the child's PSS: $pss"
pss=$(cmtwatch get --bytes -r "$parent"); near "$pss" 150 || complain "the family's PSS: $pss"
uss=$(cmtwatch get --bytes --metric=uss "$parent"); near "$uss" 40 || complain "the parent's USS: $uss"
rss=$(cmtwatch get --bytes --metric=rss "$parent"); near "$rss" 140 || complain "the parent's RSS: $rss"

# The tree has names, children below their parents.
cmtwatch get -r -v "$parent" >tree
awk -v child="$child" 'NR == 2 { found = $3 == child } END { exit !(found && NR == 3) }' tree || complain "the tree: $(cat tree)"
tail -n 1 tree | grep -q 'in all$' || complain "the tree has no sum: $(cat tree)"

# A name with an end of line and a tab is whole, and takes one line.
mkfifo named
/usr/bin/python3 -c '
import ctypes, sys
ctypes.CDLL(None).prctl(15, b"new\nline\tx", 0, 0, 0)
print("named", flush=True)
sys.stdin.read()' <named >ready &
named=$!
exec 5>named
until_true '[ -s ready ]'
cmtwatch get -v "$named" >tree
[ "$(wc -l <tree)" = 1 ] && grep -q " new line x$" tree || complain "a name with an end of line: $(cat tree)"
exec 5>&-

# With --watch it takes so many samples, and prints the peak at the end.
cmtwatch get --count=3 --interval=1ms "$parent" >again
[ "$(wc -l <again)" = 4 ] && tail -n 1 again | grep -q '^peak .* 3 samples' || complain "three samples: $(cat again)"
cmtwatch get --count=2 --interval=1ms --no-peak --csv "$parent" >csv
[ "$(wc -l <csv)" = 3 ] || complain "csv: $(cat csv)"
cmtwatch get --count=2 -f 500 --only-peak --bytes "$parent" | grep -qxE '[0-9]+' || complain "--only-peak"
cmtwatch get -r -v --json "$parent" |
  jq -e --arg child "$child" '.samples[0].by_process | length == 2 and any(.pid == ($child | tonumber))' >/dev/null ||
  complain "the family in JSON"

# A picture of it, with a band for each process; the page holds the numbers.
cmtwatch get -r -v --count=3 --interval=1ms --no-peak --plot=p.svg "$parent" >out || complain "--plot: $?"
grep -q '^<svg' p.svg && grep -q 'in all' p.svg || complain "the picture: $(head -c 300 p.svg)"
cmtwatch get --count=2 --interval=1ms --plot=p.html "$parent" >out 2>err || complain "a page: $?"
grep -q 'cmt.watch/1' p.html || complain "the page has no numbers"
status_of cmtwatch get --plot=/nowhere/p.svg "$parent"
[ "$status" = 1 ] && grep -q '/nowhere/p.svg' err || complain "a picture that cannot be written: $status $(cat err)"

# Ctrl-C prints the peak, and the end of the process does too.
rm -f watched ended
cmtwatch get -w --interval=1ms "$parent" >watched 9>&- &
watch=$!
until_true '[ -s watched ]'
kill -INT $watch
wait $watch || complain "interrupted: $?"
tail -n 1 watched | grep -q '^peak ' || complain "interrupted: no peak"
cmtwatch get -w --interval=1ms "$parent" >ended 9>&- &
watch=$!
until_true '[ -s ended ]'
let_go
wait $watch || complain "the process ended: $?"
tail -n 1 ended | grep -q '^peak ' || complain "the process ended: no peak"

# A process without memory is reported as such, never as 0.
status_of cmtwatch get 2147483646
[ "$status" = 1 ] && [ "$(cat err)" = "cmtwatch get: there is no process 2147483646" ] || complain "nobody: $status $(cat err)"
mkdir -p proc/7 proc/8 proc/9 proc/10
echo '7 (kworker/0:1) S 2 0 0 0 -1 2097152 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0' >proc/7/stat
echo '8 (gone) Z 1 0 0 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0' >proc/8/stat
status_of cmtwatch get --root=proc 7
grep -q 'kernel thread' err && [ "$status" = 1 ] || complain "a kernel thread: $(cat err)"
PROCFS=proc status_of cmtwatch get 8
grep -q 'has ended' err && [ "$status" = 1 ] || complain "a zombie: $(cat err)"

# A /proc that is elsewhere is read like our own.
echo '9 (web content) S 1 9 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0' >proc/9/stat
echo '10 (child) S 9 9 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0' >proc/10/stat
for pid in 9 10; do
  printf '0-1000 ---p 00000000 00:00 0 [rollup]\nRss: 40 kB\nPss: 30 kB\nPrivate_Dirty: 20 kB\n' >proc/$pid/smaps_rollup
  echo 100 10 4 0 0 0 0 >proc/$pid/statm
  echo 'web content' >proc/$pid/comm
done
[ "$(cmtwatch get --root=proc --bytes -r 9)" = 61440 ] || complain "a fixture's family: $(cmtwatch get --root=proc -r 9)"
[ "$(cmtwatch get --root=proc --metric=anon --bytes 9)" = $((6 * $(getconf PAGESIZE))) ] || complain "a fixture's statm"

# A process that cannot be read is in no sum; a picture states this.
rm proc/10/smaps_rollup
mkdir proc/10/smaps_rollup
cmtwatch get --root=proc -r --count=2 --interval=1ms --plot=refused.svg 9 >out || complain "some can be read: $?"
grep -q '2 samples, peak 30.0 KiB pss, 1 process could not be read<' refused.svg && grep -q '>memory (pss)<' refused.svg ||
  complain "the picture of some: $(head -c 2000 refused.svg)"
rmdir proc/10/smaps_rollup

# A closed pipe ends it silently, as the signal would.
status=0
{ cmtwatch get -w --interval=1ms $$ 2>err || echo $? >status; } | head -n 1 >/dev/null
[ "$(cat status)" = 141 ] && [ ! -s err ] || complain "a closed pipe: $(cat status err)"
exit $failed
