# cmtwatch record --measure records the figures of a /proc where every figure is known.

. "$SOURCE/tests/cmtwatch/common.sh"
. "$SOURCE/tests/cmtwatch/made_up.sh"
rm -rf proc ./*.db

is() { [ "$(ask "$1" "$2")" = "$3" ] || complain "$1: $2: $(ask "$1" "$2")"; }
page=$(getconf PAGESIZE)

# All figures of a process and of the machine.
process 7 77 'web (content)'
write proc/meminfo 'MemTotal: 1000 kB
MemAvailable: 300 kB'
write proc/diskstats '   8       0 sda 11 2 30 4 5 6 70 8 0 90 91
   8       1 idle 0 0 0 0 0 0 0 0 0 0 0'
cmtwatch record --root=proc -o all.db --count=3 --interval=1ms --max-cost=100 7 || complain "recording: $?"
is all.db 'select pid, start_ticks, parent_pid, text, command, first_tick, last_tick from process join name on name.id = name_id' \
  '7|77|1|web (content)|a b c|1|3'
is all.db 'select * from process_sample where tick_id = 2' \
  "2|1|$((100 * page))|$((5 * page))|$((2 * page))||20480|12288|12288|8192|4096|8192|1||100|7|30|40|1|666|-17|1"
is all.db 'select begin_address, end_address, permissions, text from mapping join name on name.id = name_id order by 1' \
  '4096|12288|rw-p|[heap]
20480|32768|r--p|/with  blanks (deleted)'
is all.db 'select tick_id, resident_bytes, proportional_bytes, private_bytes, dirty_bytes, swapped_bytes from mapping_change order by 2' \
  '1|8192|7168|7168|7168|4096
1|12288|5120|5120|5120|4096'
is all.db 'select tick_id, total_bytes, available_bytes, free_bytes from system_sample' \
  '1|1024000|307200|
2|1024000|307200|
3|1024000|307200|'
is all.db 'select tick_id, text, reads, read_bytes, writes, written_bytes, busy_ms from disk_sample join name on name.id = name_id' \
  '1|sda|11|15360|5|35840|90'
is all.db "select value from about where key = 'measure'" 'statm,mappings,stacks,io,oom,system,disks,groups'

# Figures that --measure does not name are not recorded.
cmtwatch record --root=proc -o few.db --count=2 --interval=1ms --max-cost=100 --measure=statm 7 || complain "statm: $?"
is few.db 'select resident_bytes > 0, proportional_bytes, read_bytes, oom_score, mappings_readable from process_sample' \
  '1||||
1||||'
is few.db 'select (select count(*) from mapping), (select count(*) from system_sample), (select count(*) from disk_sample)' '0|0|0'
cmtwatch peak -v few.db | grep -q '^7 (web (content)): its mappings were not recorded$' || complain "no mappings: $(cmtwatch peak -v few.db)"

# The machine's memory is printed with each moment, and with the moment of its worst.
write proc/meminfo 'MemTotal: 1000 kB
MemAvailable: 100 kB
SwapTotal: 50 kB
SwapFree: 20 kB'
cmtwatch record --root=proc -o all.db --count=1 7 || complain "going on: $?"
cmtwatch peak --system all.db | grep -qx 'the machine: 100 KiB of 1,000 KiB available, 30 KiB of 50 KiB swap used' ||
  complain "the machine's worst moment: $(cmtwatch peak --system all.db)"
cmtwatch show --at=0 --json all.db | jq -e '.system == {total_bytes: 1024000, available_bytes: 307200, swap_total_bytes: null,
  swap_free_bytes: null}' >/dev/null || complain "the machine in JSON"

# Moments older than --keep are deleted; figures that are still valid stay, also those of disks.
cmtwatch record --root=proc -o kept.db --keep=1ns --count=130 --interval=1ms --max-cost=100 7 || complain "--keep: $?"
[ "$(moments kept.db)" -lt 70 ] || complain "--keep keeps $(moments kept.db)"
is kept.db 'select text, reads from disk_sample join name on name.id = name_id' 'sda|11'
is kept.db 'select count(*) from mapping_change' 2
is kept.db 'select count(*) from name' 4
cmtwatch show --at=1h kept.db | grep -qE '^ +8 KiB .* heap$' || complain "forgotten: $(cmtwatch show --at=1h kept.db)"

# Shared memory of two processes counts once in their sum: the peak is the first moment, though more pages are resident
# at the second. Without proportional sets the peak is by resident sets.
process 8 88 other
most() {  # most PSS_KIB STATM: a moment of two processes
  for pid in 7 8; do
    write proc/$pid/smaps_rollup "$(mapping 1000-8000 ---p '[rollup]' 100 "$1")"
    write proc/$pid/statm "100 $2 2 0 0 0 0"
  done
  cmtwatch record --root=proc -o shared.db --measure=totals --count=1 7 8 >>said
  cmtwatch record --root=proc -o resident.db --measure=statm --count=1 7 8 >/dev/null
}
rm -f said
most 60 20
most 50 30
grep -qE '^[0-9.]+ s  100 KiB pss, 2 processes$' said && grep -qE '^peak 120 KiB pss at ' said || complain "while recording: $(cat said)"
cmtwatch peak shared.db >text
head -n 1 text | grep -qxE 'at [0-9.]+ s \([-0-9T:.]+\), peak 120 KiB pss' && tail -n 1 text | grep -qx 'no mappings are known' || complain "most, what is shared counting once: $(cat text)"
cmtwatch peak --json resident.db | jq -e --argjson page "$page" '.tick == 2 and .metric == "rss" and .bytes == 60 * $page' >/dev/null ||
  complain "most resident: $(cmtwatch peak resident.db)"
ask shared.db 'update process_sample set proportional_bytes = null where process_id = 2'
cmtwatch peak shared.db | head -n 1 | grep -q ' KiB pss or rss$' || complain "some of both: $(cmtwatch peak shared.db)"
cmtwatch export --json -o shared.json shared.db
cmtwatch compare --bytes --json shared.db shared.json resident.db >text
jq -e --argjson page "$page" '.runs | map(.metric) == ["pss or rss", "pss or rss", "rss"] and
  map(.peak_bytes) == [50 * 1024 + 30 * $page, 50 * 1024 + 30 * $page, 60 * $page]' text >/dev/null ||
  complain "compared: $(cat text)"
rm -r proc/8

# The sums of the mappings alone.
write proc/7/smaps_rollup "$(mapping 1000-8000 ---p '[rollup]' 20 12)"
cmtwatch record --root=proc -o sums.db --count=1 --measure=totals,oom 7 || complain "totals: $?"
is sums.db 'select proportional_bytes, private_bytes, oom_score, read_bytes, mappings_readable from process_sample' '12288|12288|666||'

# A stack of a thread is found by the thread's stack pointer, whatever its guard is like. A running thread has none to
# read; a mapping without a guard is no stack.
write proc/7/smaps "$(mapping 10000-90000 ---p '' 0 0)
$(mapping 90000-a0000 rw-p '' 8 8)
$(mapping b0000-c0000 rw-p '' 4 4)"
for thread in 8 9 10; do mkdir -p proc/7/task/$thread; done
echo running >proc/7/task/8/syscall
echo '202 0x1 0x0 0x0 0x0 0x0 0x0 0x9fff8 0x7f00' >proc/7/task/9/syscall
echo '202 0x1 0x0 0x0 0x0 0x0 0x0 0xbfff8 0x7f00' >proc/7/task/10/syscall
cmtwatch record --root=proc -o stack.db --count=2 --interval=1ms --max-cost=100 7 || complain "stacks: $?"
is stack.db 'select begin_address, text from mapping left join name on name.id = name_id order by 1' \
  "$((0x10000))|
$((0x90000))|[stack:9]
$((0xb0000))|"
is stack.db 'select count(*) from mapping_change' 3
cmtwatch peak stack.db | grep -qE '^ +8 KiB .* stacks$' || complain "a thread's stack: $(cmtwatch peak stack.db)"

# Without this file the thread's stat may contain the stack pointer.
rm proc/7/task/9/syscall
write proc/7/task/9/stat "9 (t) S 1 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 2 0 77 0 0 0 0 0 0 $((0x9fff8)) 0 0"
cmtwatch record --root=proc -o stat.db --count=1 7 || complain "stacks by stat: $?"
is stat.db 'select begin_address, text from mapping join name on name.id = name_id' "$((0x90000))|[stack:9]"

# Threads of a living process, if the kernel reports stack pointers.
if cat /proc/self/syscall >/dev/null 2>&1; then
  cmtwatch record -o threads.db --interval=1ms --max-cost=100 -- /usr/bin/python3 -c '
import os, sqlite3, threading
threads = [threading.Thread(target=threading.Event().wait, daemon=True) for _ in range(3)]
for thread in threads: thread.start()
recording = sqlite3.connect("threads.db", timeout=60)
count = "select count(*) from mapping join name on name.id = name_id where text like ?"
while recording.execute(count, ["[stack:%]"]).fetchone()[0] < 3: pass
recording.close()
os._exit(0)' || complain "threads: $?"
  is threads.db "select count(*) from mapping join name on name.id = name_id where text like '[stack:%]'" 3
else
  echo "stacks of living threads: skipped: this kernel has no /proc/PID/syscall"
fi

# The processor's counters are recorded, or one line and the recording contain the reason why not.
cmtwatch record --measure=counters -o counters.db --count=3 --interval=1ms --max-cost=100 $$ 2>err || complain "counters: $?"
if [ -s err ]; then
  [ "$(wc -l <err)" = 1 ] && grep -q '^cmtwatch record: no hardware counters here: ' err || complain "counters: $(cat err)"
  is counters.db "select 'cmtwatch record: no hardware counters here: ' || value from about where key = 'counters_missing'" "$(cat err)"
else
  is counters.db 'select count(*) from counter_sample' 3
fi
cmtwatch record --root=proc --measure=counters -o remote.db --count=1 7 2>err || complain "remote counters: $?"
grep -q 'they count on this machine alone, not on that of proc' err || complain "remote counters: $(cat err)"

# Mappings that may not be read are reported, and the rest is recorded.
rm proc/7/smaps
mkdir proc/7/smaps
cmtwatch record --root=proc -o refused.db --count=2 --interval=1ms --max-cost=100 7 2>err || complain "refused: $?"
[ "$(cat err)" = 'cmtwatch record: the mappings of process 7 may not be read: its other figures are recorded' ] ||
  complain "refused: $(cat err)"
is refused.db 'select resident_bytes > 0, proportional_bytes, mappings_readable from process_sample' '1||0
1||0'
cmtwatch peak -v refused.db | grep -q ': its mappings could not be read$' || complain "refused, shown"
rmdir proc/7/smaps
cmtwatch record --root=proc -o kernel.db --count=2 --interval=1ms --max-cost=100 7 2>err || complain "a kernel without smaps: $?"
grep -q 'the mappings of process 7 may not be read' err || complain "a kernel without smaps: $(cat err)"
is kernel.db 'select resident_bytes > 0, mappings_readable from process_sample' '1|0
1|0'

# A process that executes another program has the new name from then on.
process 7 77 before
cmtwatch record --root=proc -o exec.db --interval=1ms --max-cost=100 7 &
until_true '[ $(moments exec.db) -ge 2 ]'
process 7 77 after
until_true "ask exec.db 'select text from process join name on name.id = name_id' | grep -qx after"
# A process that gets the pid of another is a new one: a recording of the pid ends with the first process, a recording
# of all has both.
process 7 78 stranger
wait $! || complain "the pid was used again: $?"
is exec.db 'select count(*) from process' 1
process 7 77 first
cmtwatch record --root=proc -o both.db --all --interval=1ms --max-cost=100 &
until_true '[ $(moments both.db) -ge 2 ]'
process 7 78 second
until_true '[ $(ask both.db "select count(*) from process") = 2 ]'
rm -r proc/7
wait $! || complain "everybody has ended: $?"
is both.db 'select start_ticks, text from process join name on name.id = name_id order by 1' '77|first
78|second'
is both.db 'select count(*) from process a, process b where a.last_tick >= b.first_tick and a.start_ticks = 77 and b.start_ticks = 78' 0

# Each metric has its own peak: pss, the resident sets of the mappings, and those of statm.
process 7 77 metrics
cmtwatch record --root=proc --interval=1ms --count=1 -o metrics.db 7 >out || complain "metrics: $?"
[ "$(for metric in pss rss statm; do cmtwatch peak --bytes --metric=$metric metrics.db | sed -n 's/.* peak //p'; done)" = "12288 pss
20480 rss
$((5 * $(getconf PAGESIZE))) statm" ] || complain "metrics: $(cmtwatch peak --metric=rss metrics.db)"
[ "$(cmtwatch peak --json --metric=rss metrics.db | jq -c '[.metric, .bytes, .processes[0].mapped_resident_bytes]')" = '["rss",20480,20480]' ] ||
  complain "metrics in JSON: $(cmtwatch peak --json --metric=rss metrics.db)"
is metrics.db 'select read_call_bytes, written_call_bytes, read_bytes from process_sample' '1||4096'
cmtwatch record --root=proc --interval=1ms --count=1 --measure=statm -o statm.db 7 >out || complain "statm: $?"
status_of cmtwatch peak --metric=rss statm.db
[ "$status" = 1 ] && [ "$(cat err)" = 'cmtwatch peak: statm.db: the recording has no rss' ] || complain "no rss: $(cat err)"
exit $failed
