# cmtwatch --pause: no thread executes anything while it is measured, and all go on whatever happens to cmtwatch.

. "$SOURCE/tests/cmtwatch/common.sh"
states() { sed 's/.*) \(.\).*/\1/' /proc/"$1"/task/*/stat | sort -u | tr -d '\n'; }
goes_on() {  # goes_on FILE: both threads count on
  local before; before=$(head -c 40 "$1")
  until_true '[ "$(head -c 20 $1)" != "${before:0:20}" ] && [ "$(tail -c 20 $1)" != "${before:20:20}" ]'
}

"$SOURCE/tests/cmtwatch/counter.py" count >pid &
until_true '[ "$(wc -c <count)" = 40 ]'
pid=$(cat pid)

status=0; cmtwatch get --pause "$pid" >out 2>err || status=$?
if [ "$status" = 1 ] && grep -q 'ptrace: Operation not permitted' err; then
  kill "$pid"
  echo "skipped: ptrace is not permitted"
  exit 77
fi
[ "$status" = 0 ] || complain "get --pause: $status $(cat err)"

# Each form of output has the cost of pausing.
cmtwatch get --pause --count=3 --interval=1ms --max-cost=100 --metric=rss "$pid" >text || complain "text: $?"
tail -n 1 text | grep -qE '; paused 3 times, [0-9.]+ [mun]s in all, [0-9.]+ [mun]s at most$' || complain "the price: $(cat text)"
cmtwatch get --pause -r --count=2 --interval=1ms --json "$pid" >json || complain "json: $?"
jq -e '(.samples | length == 2 and all(.paused_ns > 0 and .processes_not_paused <= 1)) and
  .paused_ns == ([.samples[].paused_ns] | add) and .paused_ns_max == ([.samples[].paused_ns] | max)' json >/dev/null ||
  complain "the price in JSON: $(cat json)"
cmtwatch get --pause --count=2 --interval=1ms --csv "$pid" >csv || complain "csv: $?"
[ "$(head -n 1 csv | cut -d, -f6-8)" = paused_ns,not_paused,wall_ns ] || complain "csv: $(cat csv)"
awk -F, 'NR > 1 && !($6 > 0 && $7 <= 1) { exit 1 }' csv || complain "csv: $(cat csv)"

cmtwatch record -o r.db --pause --count=2 --interval=1ms --max-cost=100 "$pid" 2>err || complain "record --pause: $?"
grep -q '^cmtwatch record: paused 2 times' err || complain "record's price: $(cat err)"
cmtwatch record -o r.db --pause --count=1 "$pid" 2>err || complain "record --pause again: $?"
[ "$(sqlite3 r.db "select value from about where key = 'pauses'")" = 3 ] || complain "pauses of two recordings are not added up"
[ "$(sqlite3 r.db "select count(*) from about where key like 'paused_ns%' and value > 0")" = 2 ] || complain "about: $(sqlite3 r.db 'select * from about')"

for commands in 9 90 900 9000; do  # a slow build needs more of them until it has taken a sample
  status=0; cmtwatch run --pause -r --interval=1ms --max-cost=100 -- sh -c "for i in \$(seq $commands); do /bin/true | cat; done; exit 9" 2>err || status=$?
  [ "$status" = 9 ] && grep -q 'ended before the first sample' err || break
done
[ "$status" = 9 ] && grep -q '; paused ' err || complain "run --pause: $status $(cat err)"
status=0; cmtwatch run --pause --interval=1ms --max-cost=100 -- sh -c 'i=0; while [ $i -lt 2000 ]; do i=$((i + 1)); done; kill -TERM $$' 2>err || status=$?
[ "$status" = 143 ] || complain "a command that a signal ends: $status $(cat err)"
goes_on count

# A program that executes itself waits for the ends of its other threads, which the kernel reports to their tracer.
again='import os, sys, threading
for i in range(3): threading.Thread(target=threading.Event().wait, daemon=True).start()
if sys.argv[2] == "0": os._exit(42)
os.execv(sys.executable, [sys.executable, "-S", "-c", sys.argv[1], sys.argv[1], str(int(sys.argv[2]) - 1)])'
status=0; cmtwatch run --pause --metric=rss --interval=200us --max-cost=100 -- /usr/bin/python3 -S -c "$again" "$again" 20 2>err || status=$?
[ "$status" = 42 ] || complain "a program that executes itself: $status $(cat err)"

# cmtwatch is killed during a pause: the measurement waits for a pipe that nobody opens.
mkdir -p "proc/$pid"
cp "/proc/$pid/stat" "proc/$pid/stat"
mkfifo "proc/$pid/smaps_rollup"
cmtwatch get --pause --root=proc "$pid" >killed.out 2>&1 &
watch=$!
until_true '[ "$(states $pid)" = t ]'
before=$(cat count)

# Meanwhile a second cmtwatch may not pause it, and reports which process does.
status=0; cmtwatch get --pause "$pid" >out 2>err || status=$?
[ "$status" = 1 ] && [ ! -s out ] && grep -qE "^cmtwatch get: process $pid \(.*\) cannot be paused: [0-9]+ \(cmtwatch\) traces it already$" err ||
  complain "paused already: $status $(cat err)"
status=0; cmtwatch record -o refused.db --pause "$pid" 2>err || status=$?
[ "$status" = 1 ] && grep -q 'traces it already$' err && [ "$(ls refused.db*)" = refused.db ] || complain "record: $status $(cat err)"
[ "$(sqlite3 refused.db 'select count(*) from tick')" = 0 ] || complain "a moment that was refused is recorded"
[ "$before" = "$(cat count)" ] || complain "the threads count in the pause"

kill -KILL $watch
wait $watch 2>/dev/null || true
goes_on count
cmtwatch get --pause "$pid" >out || complain "a process that another cmtwatch had paused: $?"
[ "$(states "$pid" | tr -d RSD)" = "" ] || complain "states after the kill: $(states "$pid")"

# The parent of a process that ends in a pause still waits for it.
rm "proc/$pid/smaps_rollup"
sh -c '"$1" other >other.pid & wait $!; echo $? >other.status' sh "$SOURCE/tests/cmtwatch/counter.py" &
until_true '[ "$(wc -c <other)" = 40 ]'
other=$(cat other.pid)
mkdir -p "proc/$other"
cp "/proc/$other/stat" "proc/$other/stat"
mkfifo "proc/$other/smaps_rollup"
cmtwatch get --pause --root=proc "$other" >out 2>&1 &
watch=$!
until_true '[ "$(states $other)" = t ]'
kill -KILL "$other"
: >"proc/$other/smaps_rollup"
wait $watch || true
until_true '[ -s other.status ]'
[ "$(cat other.status)" = 137 ] || complain "its parent sees: $(cat other.status)"

# A /proc of another machine names other processes.
mkdir -p "proc/$$"
sed 's/^\(\([^ ]* \)\{21\}\)[0-9]*/\11/' /proc/$$/stat >proc/$$/stat
status=0; cmtwatch get --pause --root=proc $$ 2>err || status=$?
[ "$status" = 1 ] && grep -qx "cmtwatch get: process $$ of proc is none of this machine: it cannot be paused" err ||
  complain "another machine: $status $(cat err)"
kill "$pid"
exit $failed
