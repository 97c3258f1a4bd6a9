# Mappings of a process without page faults are kept from an earlier moment, and every output has their age.

. "$SOURCE/tests/cmtwatch/common.sh"
. "$SOURCE/tests/cmtwatch/made_up.sh"
rm -rf proc ./*.db
is() { [ "$(ask "$1" "$2")" = "$3" ] || complain "$1: $2: $(ask "$1" "$2")"; }
process 7 77 job
process 8 78 other

# Nothing changes: with 4, each process is read at the first moment and then at each fourth, not both at the same one.
cmtwatch record --root=proc -o every4.db --count=9 --interval=1ms --max-cost=100 --smaps-every=4 7 8 >out 2>err ||
  complain "recording: $(cat err)"
grep -q 'mappings were not read again 12 of 18 times' err || complain "not said: $(cat err)"
is every4.db 'select group_concat(tick_id) from (select tick_id from kept_sample where process_id = 1 order by 1)' 2,4,5,6,8,9
is every4.db 'select group_concat(tick_id) from (select tick_id from kept_sample where process_id = 2 order by 1)' 3,4,5,7,8,9
is every4.db "select value from about where key = 'readings_kept'" 12
is every4.db 'select count(*) from kept_sample join tick on id = tick_id where age_ns <= 0 or age_ns > begin_ns' 0
is every4.db 'select count(distinct proportional_bytes) from process_sample' 1
cmtwatch export --json every4.db | jq -e '.columns.kept == ["tick_id", "age_ns"] and (.processes[0].kept | length) == 6' \
  >/dev/null || complain "export"
cmtwatch show --at=1h --json every4.db 2>/dev/null | jq -e '[.processes[].mappings_age_ns > 0] == [true, true]' >/dev/null ||
  complain "show --json"
cmtwatch show --at=1h every4.db 2>/dev/null | grep -c 'mappings of 2 of 2 processes were read up to .* before' >/dev/null ||
  complain "show"

# By default only --all keeps mappings.
cmtwatch record --root=proc -o named.db --count=3 --interval=1ms --max-cost=100 7 >out 2>err || complain "named"
is named.db 'select count(*) from kept_sample' 0
cmtwatch record --root=proc -o all.db --count=3 --interval=1ms --max-cost=100 --all >out 2>err || complain "all"
is all.db 'select count(*) > 0 from kept_sample' 1

# A page fault: the mappings are read at the first moment that has it.
cmtwatch record --root=proc -o fault.db --interval=5ms --max-cost=100 --smaps-every=1000 7 >out 2>err &
until_true '[ "$(moments fault.db)" -ge 3 ]'
write proc/7/smaps "$(mapping 1000-3000 rw-p '[heap]' 8 6)"
write proc/7/stat "7 (job) S 1 0 0 0 -1 0 101 0 7 0 30 40 0 0 20 0 1 0 77 0 0"
until_true '[ "$(ask fault.db "select count(*) from process_sample where minor_faults = 101")" -ge 3 ]'
kill -INT $!
wait $! || complain "interrupted: $?"
is fault.db "select count(*) from kept_sample join (select min(tick_id) as tick_id from process_sample where
  minor_faults = 101) using (tick_id)" 0
is fault.db 'select group_concat(distinct proportional_bytes) from process_sample where minor_faults = 101' 6144
write proc/7/stat "7 (job) S 1 0 0 0 -1 0 100 0 7 0 30 40 0 0 20 0 1 0 77 0 0"

# A recording of cmt 0.1.0 lacks the table; it is read, and continued with it.
ask every4.db 'drop table kept_sample'
cmtwatch export --json every4.db | jq -e '.columns.kept == null and .processes[0].kept == null' >/dev/null || complain "old"
cmtwatch show --at=1h --json every4.db 2>/dev/null | jq -e '.processes[0].mappings_age_ns == 0' >/dev/null || complain "old show"
cmtwatch record --root=proc -o every4.db --count=2 --interval=1ms --max-cost=100 --smaps-every=100 7 8 >out 2>err
is every4.db 'select count(*) > 0 from kept_sample' 1
for wrong in 0 x 1.5; do
  status_of cmtwatch record --root=proc -o w.db --smaps-every=$wrong 7
  [ "$status" = 2 ] && [ "$(wc -l <err)" -le 2 ] || complain "--smaps-every=$wrong: $status $(cat err)"
done
exit $failed
