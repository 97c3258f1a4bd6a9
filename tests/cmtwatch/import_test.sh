# cmtwatch import makes a recording of smaps files; peak and show print a recording whose every figure is known.

. "$SOURCE/tests/cmtwatch/common.sh"
. "$SOURCE/tests/cmtwatch/made_up.sh"
rm -f ./*.db ./*.smaps

# Two moments: a small one, and a large one with everything that a table can have.
{
  mapping 1000-2000 r-xp '/bin/a program' 4 4
  mapping 2000-3000 rw-p '[heap]' 4 4
} >small.smaps
{
  mapping 400000-500000 r-xp '/bin/a program' 1000 500
  mapping 500000-510000 rw-p '/bin/a program' 64 64
  mapping 510000-530000 rw-p '' 100 100
  mapping 700000-40700000 rw-p '[heap]' 1000000 999999
  for i in $(seq 10 33); do
    mapping "7f${i}00000000-7f${i}00100000" r-xp "/lib/lib$i.so" $((i * 10)) $i
    mapping "7f${i}00100000-7f${i}00110000" rw-p "/lib/lib$i.so" 8 8
  done
  mapping 7f3300110000-7f3300120000 rw-p '' 16 16
  mapping 7f3400000000-7f3400001000 ---p '' 0 0
  mapping 7f3400001000-7f3400801000 rw-p '' 24 24
  mapping 7f3500000000-7f3600000000 rw-p '' 123456 123456
  mapping 7f3700000000-7f3700100000 rw-s 'socket:[4711]' 40 20
  mapping 7f3800000000-7f3800100000 rw-s '/memfd:two  words (deleted)' 2048 1024
  mapping 7ffe00000000-7ffe00021000 rw-p '[stack]' 132 132
  mapping ffffffffff600000-ffffffffff601000 --xp '[vsyscall]' 0 0
} >large.smaps
cp small.smaps after.smaps
touch -d '2020-01-01 00:00:00.5 UTC' small.smaps
touch -d '2020-01-01 00:00:02 UTC' large.smaps
touch -d '2020-01-01 00:00:10 UTC' after.smaps
cmtwatch import -o large.db --pid=4711 --name='a program' after.smaps large.smaps small.smaps || complain "import: $?"
whole large.db
[ "$(ls large.db*)" = large.db ] || complain "files are left beside the recording: $(ls)"
[ "$(ask large.db 'select begin_ns, wall_ns from tick')" = '0|1577836800500000000
1500000000|1577836802000000000
9500000000|1577836810000000000' ] || complain "moments: $(ask large.db 'select * from tick')"
TZ=UTC0 cmtwatch peak large.db >peak.txt || complain "peak: $?"
diff -u "$SOURCE/tests/cmtwatch/peak.txt" peak.txt || complain "the table of the peak has changed"
cmtwatch show --at=10s --json large.db | jq -e '.begin_ns == 9500000000 and .processes[0].pid == 4711 and
  .processes[0].resident_bytes == 8192 and ([.processes[0].mappings[].name] == ["/bin/a program", "[heap]"])' >/dev/null ||
  complain "what is gone is still there: $(cmtwatch show --at=10s --json large.db)"

# --at by the clock names a second or a millisecond.
for at in 2020-01-01T00:00:02 '2020-01-01 00:00:09' 2020-01-01T00:00:02.0; do
  TZ=UTC0 cmtwatch show --at="$at" --json large.db | jq -e '.begin_ns == 1500000000' >/dev/null || complain "--at=$at"
done
[ "$(TZ=UTC0 cmtwatch show --at=2020-01-01T00:00:10 large.db | head -n 1)" = 'at 9.500 s (2020-01-01T00:00:10.000)' ] ||
  complain "the clock: $(cmtwatch show --at=2020-01-01T00:00:10 large.db | head -n 1)"
cmtwatch show --at=100s large.db >out 2>err || complain "beyond the end: $? $(cat err)"
grep -q '^at 9.500 s ' out && [ "$(cat err)" = 'cmtwatch show: large.db: the recording ends at 9.50 s; this is its last moment' ] ||
  complain "beyond the end: $(cat out err)"
TZ=UTC0 cmtwatch show --at=2019-12-31T00:00:00 large.db >out 2>err || complain "before the begin: $? $(cat err)"
first=$(TZ=UTC0 cmtwatch show --at=0s large.db | head -n 1)
[ "$(head -n 1 out)" = "$first" ] && [ "$(cat err)" = "cmtwatch show: large.db: the recording begins at $(
  sed 's/.*(\(.*\))$/\1/' <<<"$first"); this is its first moment" ] || complain "before the begin: $(cat out err)"
for at in 2020-01-01 2020-13-01T00:00:00 2020-01-01T00:00:00. 9999-01-01T00:00:00 2020-01-01T00:00:00x; do
  status_of cmtwatch show --at="$at" large.db
  [ "$status" = 2 ] && grep -q 'expected a time such as 2.5s or 2026-11-22T00:53:10' err || complain "--at=$at: $status $(cat err)"
done

status_of cmtwatch show large.db
[ "$status" = 2 ] && grep -qx 'cmtwatch show: the moment is missing: --at=2.5s, or --at=2026-11-22T00:53:10' err || complain "no --at: $status $(cat err)"

# --interval replaces the files' times; the order is the one given.
cmtwatch import -o grid.db --interval=250ms after.smaps large.smaps small.smaps || complain "--interval: $?"
[ "$(ask grid.db 'select begin_ns from tick')" = '0
250000000
500000000' ] || complain "--interval: $(ask grid.db 'select begin_ns from tick')"

# The kernel's smaps of this process is read back unchanged.
cat /proc/$$/smaps >self.smaps
cmtwatch import -o self.db self.smaps || complain "an own smaps: $?"
[ "$(ask self.db 'select count(*) from mapping')" = "$(grep -c '^[0-9a-f]' self.smaps)" ] || complain "mappings are missing"
[ "$(ask self.db 'select resident_bytes / 1024 from process_sample')" = "$(awk '/^Rss/ { sum += $2 } END { print sum }' self.smaps)" ] ||
  complain "the sum of the resident sets"

# smaps_rollup has the sums of all mappings. Its one range is no memory.
cat /proc/$$/smaps_rollup >sums.smaps
cmtwatch import -o sums.db sums.smaps || complain "smaps_rollup: $?"
whole sums.db
kib() { awk -v key="$1:" '$1 == key { sum += $2 } END { print sum * 1024 }' sums.smaps; }
cmtwatch peak --json sums.db | jq -e --argjson rss "$(kib Rss)" --argjson pss "$(kib Pss)" '.bytes == $pss and
  (.processes[0] | .resident_bytes == $rss and .mapped_resident_bytes == $rss and .proportional_bytes == $pss and
  .size_bytes == null and .mappings == [])' >/dev/null || complain "the sums: $(cmtwatch peak --json sums.db)"
cmtwatch peak sums.db >out && grep -q ' not known .*(smaps)$' out && grep -qx 'no mappings are known' out ||
  complain "the sums as text: $(cat out)"

# refuses MESSAGE FILE...: checks that one line is printed and no recording made.
refuses() {
  local message=$1 status=0; shift
  cmtwatch import -o wrong.db "$@" 2>err || status=$?
  [ "$status" = 1 ] && [ "$(cat err)" = "cmtwatch import: $message" ] && [ ! -e wrong.db ] ||
    complain "$*: exit $status, $(cat err), $(ls)"
}
refuses 'nowhere: No such file or directory' small.smaps nowhere
: >empty.smaps
refuses 'empty.smaps: no mappings' empty.smaps
printf '1000-2000 rw-p 0 0 0\nRss: 4 kB\nnonsense\n' >broken.smaps
refuses 'broken.smaps:3: expected a mapping' small.smaps broken.smaps
printf '1000-2000 rw-p 0 0 0\nRss: many\n' >broken.smaps
refuses 'broken.smaps:2: expected a number' broken.smaps
printf '1000-2000 rw-p 0 0 0\nRss: 4 kB\nPss: 1' >broken.smaps
refuses 'broken.smaps: breaks off in the middle of a line' broken.smaps
cat /proc/$$/maps >maps
refuses 'maps:1: no figures of a mapping: a maps file?' maps
refuses '.: Is a directory' .
touch -d '2030-01-01 UTC' sums.smaps
refuses 'sums.smaps: a copy of smaps_rollup, unlike small.smaps' sums.smaps small.smaps
cat small.smaps sums.smaps >broken.smaps
refuses 'broken.smaps: a copy of smaps_rollup, with further mappings' broken.smaps
cp large.db before.db
status_of cmtwatch import -o large.db small.smaps
[ "$status" = 1 ] && [ "$(cat err)" = 'cmtwatch import: large.db: is there already' ] && cmp -s large.db before.db ||
  complain "a recording that is there: $status $(cat err)"
exit $failed
