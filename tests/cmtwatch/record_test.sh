# cmtwatch record writes the memory of processes, moment by moment, to a file that is always whole.

. "$SOURCE/tests/cmtwatch/common.sh"
rm -f ./*.db ./*.db-wal ./*.db-shm
hold 8 30 4

# --count gives so many moments of two processes, and one file at the end.
cmtwatch record -o r.db -r --count=3 --interval=1ms --max-cost=100 "$parent" || complain "recording: $?"
[ "$(ls r.db*)" = r.db ] || complain "files are left beside the recording: $(ls)"
whole r.db
[ "$(ask r.db 'select count(*) from tick')" = 3 ] || complain "moments: $(ask r.db 'select count(*) from tick')"
[ "$(ask r.db 'select pid from process order by pid')" = "$(printf '%s\n' "$parent" "$child" | sort -n)" ] || complain "processes"
[ "$(ask r.db 'select count(*) from process_sample where resident_bytes > 0 and oom_score is not null')" = 6 ] || complain "samples"

# An idle mapping that nobody else shares has one row, however many moments there are.
most=$(ask r.db "select max(n) from (select count(*) n from mapping_change join mapping on mapping.id = mapping_id
  where permissions = 'rw-s' group by mapping_id)")
[ "$most" = 1 ] || complain "an idle mapping has $most rows"

# A picture is of the whole recording, and needs no mappings.
cmtwatch record -o p.db --measure=statm --count=2 --interval=1ms --plot=p.svg "$parent" || complain "--plot: $?"
grep -qE '2 moments, most [0-9.]+ MiB rss at ' p.svg && grep -q '>mappings not read<' p.svg && ! grep -q '>heap<' p.svg || complain "statm's picture"
cmtwatch record -o p.db --count=2 --interval=1ms --plot=p.svg "$parent" || complain "--plot, going on: $?"
grep -q '4 moments, most ' p.svg && grep -q '>heap (pss)<' p.svg && grep -q '>shared memory (pss)<' p.svg || complain "the picture"
status_of cmtwatch record -o none.db --plot=/nowhere/p.svg --count=1 "$parent"
[ "$status" = 1 ] && grep -q '/nowhere/p.svg' err && [ ! -e none.db ] || complain "a picture that cannot be written: $(cat err)"

# A recording is continued with later moments of the same processes.
cmtwatch record -o r.db --count=2 --interval=1ms --max-cost=100 "$parent" || complain "going on: $?"
[ "$(ask r.db 'select count(*), count(distinct begin_ns) from tick')" = "5|5" ] || complain "gone on: $(ask r.db 'select * from tick')"
[ "$(ask r.db 'select count(*) from tick a join tick b on b.id = a.id + 1 where b.begin_ns < a.end_ns')" = 0 ] || complain "time goes back"
[ "$(ask r.db 'select count(*) from process')" = 2 ] || complain "a process was recorded as another"

# peak prints the parts of the memory at the peak.
cmtwatch peak --json r.db >peak.json
jq -e '.schema == "cmt.moment/1" and (.processes | length) == 2 and ([.processes[].resident_bytes] | add) > 42e6 and
  ([.parts[] | select(.name == "anonymous").proportional_bytes] | add) > 34e6 and
  all(.processes[]; .mappings_readable and any(.mappings[]; .name == "[stack]"))' peak.json >/dev/null ||
  complain "the peak: $(head -c 600 peak.json)"
cmtwatch peak r.db >peak.text
grep -qE '^ *[0-9,]+ KiB .* stacks$' peak.text && grep -q '  in all$' peak.text || complain "the peak: $(cat peak.text)"
cmtwatch peak --system r.db | grep -q "^ *$parent " || complain "the machine's worst moment"
cmtwatch show --at=1h --pid="$parent" r.db | grep -q "^ *$parent " || complain "a moment by time"
status=0; cmtwatch peak --pid=2147483646 r.db 2>err || status=$?
[ "$status" = 1 ] && grep -qx 'cmtwatch peak: r.db: no such moment in the recording' err || complain "nobody's peak: $(cat err)"

# compare puts runs of several tools into one table.
echo '[[2000, 2.5], [1000, 1]]' >tracket.json
cmtwatch get --count=2 --interval=1ms --json -o watch.json "$parent"
cmtwatch compare --plot=runs.svg r.db old:tracket.json watch.json >compared || complain "compare: $?"
grep -qE '^old +\? +2.50 MiB .* 2.000 s +1.000 s +2$' compared && [ "$(wc -l <compared)" = 4 ] || complain "$(cat compared)"
grep -q 'watch.json (pss)' runs.svg || complain "the picture of three runs"
cmtwatch compare --json r.db r.db | jq -e '.runs[1].peak_ratio_to_first == 1 and (.runs[0].bytes | length) == 5' >/dev/null ||
  complain "compared as JSON"
status=0; cmtwatch compare holder.pids 2>err || status=$?
[ "$status" = 1 ] && grep -q '^cmtwatch compare: holder.pids: neither' err || complain "not a run: $(cat err)"

# Signals that ask to end leave one whole file; SIGKILL leaves whole moments.
for signal in INT TERM HUP QUIT; do
  cmtwatch record -o $signal.db --interval=1ms "$parent" 9>&- &
  until_true "[ \$(moments $signal.db) -ge 2 ]"
  kill -$signal $!
  wait $! || complain "SIG$signal: $?"
  [ "$(ls $signal.db*)" = $signal.db ] || complain "SIG$signal leaves $(ls $signal.db*)"
  whole $signal.db
done
cmtwatch record -o killed.db --interval=1ms "$parent" 9>&- &
until_true '[ $(moments killed.db) -ge 3 ]'
status_of cmtwatch record -o killed.db --count=1 "$parent"
[ "$status" = 1 ] && [ "$(cat err)" = 'cmtwatch record: killed.db: another cmtwatch record is writing it' ] || complain "two recorders: $status, $(cat err)"
kill -KILL $!
wait $! 2>/dev/null || true
whole killed.db
cmtwatch peak killed.db >out || complain "a killed recording cannot be read"
[ "$(ask killed.db 'select count(*) from tick where end_ns = begin_ns')" = 0 ] || complain "half a moment"

# The recording ends with the process. A command's status is passed on.
cmtwatch record -o ended.db --interval=1ms "$parent" 9>&- &
until_true '[ $(moments ended.db) -ge 1 ]'
let_go
wait $! || complain "the process ended: $?"
status=0; cmtwatch record -o command.db -- sh -c 'exit 6' || status=$?
[ "$status" = 6 ] && whole command.db || complain "a command: $status"

# Between vfork and exec a child runs in its parent's memory, which counts once.
if made_vfork; then
  rm -f seen borrowed
  cmtwatch record -o vfork.db -r --measure=statm --interval=1ms --max-cost=100 -- ./vfork &
  until_true '[ -e borrowed ]'
  before=$(moments vfork.db)
  until_true '[ $(moments vfork.db) -ge $((before + 5)) ]'
  touch seen
  wait $! || complain "vfork: $?"
  most=$(ask vfork.db 'select max(sum) from (select sum(resident_bytes) as sum from process_sample group by tick_id)')
  [ "$most" -ge 64000000 ] && [ "$most" -lt 100000000 ] || complain "memory that is lent counts twice: $most"
else
  echo "skipped: kcmp(2) or a C compiler is missing: memory that is lent to a child"
fi

# Old moments are deleted, figures that are still valid are kept: a name with blanks, mapped before and idle since.
cp /bin/sleep 'a name with blanks'
'./a name with blanks' 1000 &
sleeper=$!
until_true '[ "$(cat /proc/$sleeper/comm)" = "a name with bla" ]'
cmtwatch record -o kept.db --keep=1ns --count=130 --interval=1ms --max-cost=100 $sleeper || complain "--keep: $?"
kill $sleeper
whole kept.db
[ "$(ask kept.db 'select count(*) from tick')" -lt 70 ] || complain "--keep keeps $(ask kept.db 'select count(*) from tick')"
ask kept.db 'select text from name' | grep -q '/a name with blanks$' || complain "a name is cut: $(ask kept.db 'select text from name')"
cmtwatch show --at=1h kept.db | grep -qE " KiB .*/a name with blanks$" || complain "forgotten: $(cmtwatch show --at=1h kept.db)"

# A file that is no recording is reported and not written to.
echo precious >text
ask other.db 'create table t (a)'
for file in text other.db; do
  cp $file before
  status=0; cmtwatch record -o $file --count=1 $$ 2>err || status=$?
  [ "$status" = 1 ] && grep -q "^cmtwatch record: $file: " err && cmp -s $file before || complain "$file: $status $(cat err)"
  status=0; cmtwatch peak $file 2>err || status=$?
  [ "$status" = 1 ] || complain "peak of $file: $status"
done
status=0; cmtwatch peak nowhere.db 2>err || status=$?
[ "$status" = 1 ] && grep -qx 'cmtwatch peak: nowhere.db: No such file or directory' err || complain "$(cat err)"
# The cost of one look is all of its time, and is not printed.
cmtwatch record --count=1 -o once.db $$ >out 2>err || complain "once: $(cat err)"
tail -n 1 out | grep -qE '; 1 moment$' || complain "once: $(cat out)"
# Moments that are left out for their cost are reported, and their number is in the recording.
cmtwatch record --interval=1ms --max-cost=0.001 --duration=100ms -o left_out.db $$ >out 2>err || complain "--max-cost: $(cat err)"
tail -n 1 out | grep -qE '; 1 moment(, [0-9]+ missed)?, [0-9]+ skipped for their cost; recording took' || complain "left out: $(cat out)"
[ "$(ask left_out.db "select value > 20 from about where key = 'moments_skipped_for_cost'")" = 1 ] ||
  complain "left out: $(ask left_out.db 'select * from about')"
cmtwatch record --interval=1ms --max-cost=0.001 -o beside.db -- sleep 0.1 2>err || complain "--max-cost beside a command: $(cat err)"
grep -qE '^cmtwatch record: [0-9]+ of [0-9]+ moments left out: recording takes more than 0.00 % of a processor \(--max-cost\)$' err ||
  complain "left out beside a command: $(cat err)"
exit $failed
