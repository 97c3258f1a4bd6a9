# record --explain: the recorded parts of an idle process are those of cmtwatch explain. peak, show, export and the picture
# have them.

. "$SOURCE/tests/cmtwatch/common.sh"

[ "$(uname -m)" = x86_64 ] || { echo "skipped: explain reads x86-64 only"; exit 77; }
command -v cc >/dev/null || { echo "skipped: no C compiler"; exit 77; }
cc -O1 -o scattered "$SOURCE/tests/cmtwatch/scattered.c" 2>err || { echo "skipped: the C compiler does not work"; exit 77; }
rm -rf ./*.db ready other other_user
is() { [ "$(ask "$1" "$2")" = "$3" ] || complain "$1: $2: $(ask "$1" "$2")"; }
fast="--interval=1ms --max-cost=100"

./scattered 4000 >ready &
pid=$!
trap 'status=$?; kill $pid 2>/dev/null || true; exit $status' EXIT
until_true '[ -s ready ] || ! kill -0 $pid'
until_true 'grep -q "^[0-9]* (.*) S " /proc/$pid/stat'
may_read $pid || { echo "skipped: processes may not be read here"; exit 77; }

# Each look has the parts of cmtwatch explain, and they add up to the kernel's sum.
status_of cmtwatch record -o a.db $fast --explain=1ms --count=2 $pid
[ "$status" = 0 ] || complain "record: $status $(cat err)"
cmtwatch explain --json $pid | jq -c '.processes[0].parts | sort_by(.part) | map([.part, .name, .bytes])' >explained
for tick in 1 2; do
  ask a.db "select json_group_array(json_array(part, name, bytes)) from (select * from part_sample join part
    on part.id = part_id where tick_id = $tick order by part)" >recorded
  cmp -s explained recorded || complain "moment $tick: $(cat explained recorded)"
done
is a.db 'select sum(bytes) from part_sample where tick_id = 1' "$(awk '$1 == "Rss:" { kib += $2 } END { print kib * 1024 }' /proc/$pid/smaps)"
is a.db 'select value from about where key = "explain_interval_ns"' 1000000
is a.db 'select count(*) from about where key like "parts_%"' 0
# One in 25 blocks lives, and keeps its page.
is a.db 'select min(bytes) > 100000 and max(bytes) < 1000000 from part_sample join part on id = part_id where part = "pinned"' 1

# A look is not at each moment. Moments after it show it with its age.
cmtwatch record -o b.db --interval=30ms --max-cost=100 --explain --count=3 $pid >out 2>err || complain "the default interval: $(cat err)"
is b.db 'select group_concat(distinct tick_id) from part_sample' 1
cmtwatch record -o none.db $fast --count=1 $pid >out 2>err || complain "without looks: $(cat err)"
is none.db 'select count(*) from part_sample' 0
cmtwatch show --at=1h b.db >text 2>err
grep -q '^ *resident  part, [0-9]*\.[0-9]* s before$' text && grep -q ' KiB  free, on pages that live blocks keep$' text ||
  complain "show: $(cat text)"
cmtwatch peak a.db | grep -q '^ *resident  part$' || complain "peak: $(cmtwatch peak a.db)"
cmtwatch show --at=1h --json b.db 2>err | jq -c '.processes[0].explanation | select(.age_ns >= 30000000 and .begin_ns >= 0) |
  .parts | sort_by(.part) | map([.part, .name, .bytes])' >recorded
cmp -s explained recorded || complain "show --json: $(cat recorded)"
cmtwatch peak --json none.db | jq -e '.processes[0].explanation == null' >/dev/null || complain "without looks: peak --json"
cmtwatch export --json a.db | jq -c 'select(.columns.parts == ["tick_id", "bytes", "live_bytes"]) | .processes[0].parts |
  sort_by(.part) | map([.part, .name, .samples[0][1]])' >recorded
cmp -s explained recorded || complain "export: $(cat recorded)"

# Several processes are added up. A picture has the bands.
./scattered 100 >other &
second=$!
until_true '[ -s other ] || ! kill -0 $second'
cmtwatch record -o two.db $fast --explain=1ms --count=2 --plot=two.html $pid $second >out 2>err || complain "two processes: $(cat err)"
kill $second
cmtwatch peak two.db >text
grep -q '^ *resident  part of 2 of 2 processes$' text || complain "two processes: $(cat text)"
pinned=$(ask two.db 'select sum(bytes) from part_sample join part on id = part_id where part = "pinned" and tick_id = 2')
grep -q '"parts_time_ns": \[' two.html && tr -d ' \n' <two.html | grep -qF ",$pinned]" || complain "the picture has not $pinned"

# A command that cmtwatch traces until its end, and that is busy.
cmtwatch record -o busy.db $fast --explain=1ms -- sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done' 2>err ||
  complain "a command: $(cat err)"
is busy.db 'select count(distinct tick_id) > 1 from part_sample' 1
[ "$(ask busy.db 'select count(*) from about where key = "parts_missing"')" = 0 ] || complain "a command's parts: $(cat err)"

# Old looks are forgotten with their moments.
cmtwatch record -o kept.db $fast --keep=1ms --explain=20ms --count=130 $pid >out 2>err || complain "--keep: $(cat err)"
is kept.db 'select count(*) from part_sample where tick_id not in (select id from tick)' 0

# A recording of cmt 0.1.0 has no such tables; it is read, and continued with them.
ask a.db 'drop table part_sample; drop table part'
cmtwatch peak a.db >text && ! grep -q 'resident  part' text && cmtwatch export --json a.db | jq -e '.columns.parts == null' >/dev/null ||
  complain "an older recording: $(cat text)"
cmtwatch record -o a.db $fast --explain --count=1 $pid >out 2>err || complain "continuing an older recording: $(cat err)"
is a.db 'select count(distinct tick_id) from part_sample' 1

status_of cmtwatch record -o root.db --root=nowhere --explain $pid
[ "$status" = 2 ] && grep -q 'explain reads processes of this /proc' err || complain "--root: $status $(cat err)"

# A process that may not be looked at is counted, said once, and the recording goes on.
mkdir -m 777 other_user
if [ "$(id -u)" = 0 ]; then as="setpriv --reuid=65534 --regid=65534 --clear-groups" whose=$pid; else as="" whose=1; fi
if $as cmtwatch explain $whose >out 2>err || ! $as sh -c 'cmtwatch --version && : >other_user/written' >/dev/null 2>&1; then
  echo "a process that may not be read: skipped: there is none here"
  exit $failed
fi
$as cmtwatch record -o other_user/r.db $fast --explain=1ms --count=3 $whose >out 2>err || complain "another user's process: $(cat err)"
[ "$(grep -c "^cmtwatch record: no parts of memory: process $whose may not be looked at: Permission denied; run this as root" err)" = 1 ] ||
  complain "another user's process: $(cat err)"
$as cmtwatch explain --stop $whose >out 2>err && complain "another user's process, --stop: it is stopped"
grep -q "^cmtwatch explain: process $whose (.*) cannot be paused: .*run this as root" err || complain "another user's, --stop: $(cat err)"
is other_user/r.db 'select count(*) from tick' 3
is other_user/r.db 'select value like "process % may not%" from about where key = "parts_missing"' 1
exit $failed
