# cmtwatch wss measures the memory that a process touches, and no other.

. "$SOURCE/tests/cmtwatch/common.sh"

mkfifo go
"$SOURCE/tests/cmtwatch/toucher.py" <go >pid &
exec 9>go
until_true '[ -s pid ]'
pid=$(cat pid)
mib=1048576
only=(cmtwatch wss --method=referenced --kind=anonymous --longer-than=16000 "$pid")  # its 64 MiB

# A process that waits touches nothing, also in the first interval: all pages were marked before.
status=0; "${only[@]}" --interval=1ms --json >idle.json 2>err || status=$?
if [ "$status" != 0 ] && grep -qE 'clear_refs|may not be marked' err; then
  echo "skipped: clear_refs cannot be written here: $(cat err)"
  exit 77
fi
[ "$status" = 0 ] || complain "idle: $status $(cat err)"
jq -e '.schema == "cmt.wss/1" and .method == "referenced" and (.samples | length) == 1 and
  (.samples[0] | .working_set_bytes == 0 and .resident_bytes >= 64 * 1048576 and (.mappings | length) == 1 and
    .interval_ns == .end_ns - .begin_ns and .interval_ns > 0 and .begin_ns >= .marking_ns) and
  (.filter | .kinds == ["anonymous"] and .longer_than_pages == 16000)' idle.json >/dev/null || complain "idle: $(cat idle.json)"

# The touched memory is the working set, to the page. Most intervals may be too short for all of it, none has more.
echo 8 >&9
"${only[@]}" -w --interval=50ms --max-cost=100 --csv >csv &
watch=$!
until_true 'grep -q ",$((8 * mib)),[0-9]*,0,0$" csv'

# Meanwhile no second cmtwatch may mark it: both would be wrong.
status=0; "${only[@]}" --interval=1ms >out 2>err || status=$?
[ "$status" = 1 ] && [ ! -s out ] && [ "$(cat err)" = "cmtwatch wss: process $pid is being marked by another cmtwatch wss: they would disturb each other" ] ||
  complain "two at once: $status $(cat out err)"
kill -INT $watch
wait $watch || complain "Ctrl-C: $?"
awk -F, -v most=$((8 * mib)) 'NR > 1 && $3 > most { exit 1 }' csv || complain "more than was touched: $(cat csv)"
[ "$(head -n 1 csv)" = "begin_ns,end_ns,working_set_bytes,resident_bytes,huge_page_bytes,not_tracked_bytes" ] || complain "$(head -n 1 csv)"
awk -F, 'NR > 2 && $1 < last { exit 1 } { last = $2 }' csv || complain "intervals overlap: $(cat csv)"

# With --pause the output has its cost; the text states how it was measured, and the limits of the method.
"${only[@]}" --pause --count=2 --interval=20ms -v >text 2>err || { grep -q 'ptrace: Operation not permitted' err && touch no_ptrace; }
if [ ! -e no_ptrace ]; then
  grep -qE '; paused 3 times, ' text || complain "wss --pause: $(cat text err)"
else
  "${only[@]}" --count=2 --interval=20ms -v >text
fi
grep -q '^mapping by mapping, by clear_refs; ' text && grep -q 'in the mean of 2 intervals of ' text || complain "text: $(cat text)"
# It may not get the processor in an interval, and then touches nothing.
until_true '"${only[@]}" --interval=20ms -v >text && grep -qE " +[0-9.]+ [KM]?i?B of +64.0 MiB  rw-p anonymous$" text'
"${only[@]}" --bytes --interval=1ms >bytes
head -n 1 bytes | grep -qE ' \+ +[0-9.]+ [mun]?s +[0-9]+ of +[0-9]{8}  [0-9,]+ pages?$' || complain "--bytes"
cmtwatch wss --permissions=x --interval=1ms --csv -v --method=referenced "$pid" | awk -F, 'NR > 1 && $5 !~ /x/ { exit 1 }' || complain "--permissions"

# If pages are not known, the picture shows mappings and no reuse distances; the page contains the numbers.
until_true '"${only[@]}" --count=3 --interval=20ms --plot=mappings.svg >plotted && grep -q ">anonymous<" mappings.svg'
grep -q 'which mappings' mappings.svg || complain "the picture of mappings: $(head -c 300 mappings.svg)"
! grep -q 'reuse distance' mappings.svg plotted || complain "a reuse distance of mappings"
grep -q 'how far apart their uses are, cannot be told$' plotted || complain "$(cat plotted)"
"${only[@]}" --count=1 --interval=20ms --plot=mappings.html >out 2>&1 || complain "a page: $?"
grep -q 'cmt.wss/1' mappings.html || complain "the page has no numbers"
jq -e '.reuse_distance == null' idle.json >/dev/null || complain "a reuse distance in JSON"

# The process ends meanwhile: finished intervals are printed; if there is none, a line reports it.
"${only[@]}" -w --interval=10ms --max-cost=100 >ended 2>err 9>&- &
watch=$!
until_true '[ -s ended ]'
exec 9>&-
wait $watch || complain "the process ended: $? $(cat err)"
grep -q '^the process has ended; ' ended || complain "the process ended: $(tail -n 2 ended)"
sleep 1000 &
sleeper=$!
cmtwatch wss --method=referenced --interval=1h -o early $sleeper >early.out 2>early.err &
early=$!
until_true 'grep -q " FLOCK .* $early " /proc/locks'  # it marks it
kill $sleeper
status=0; wait $early || status=$?
[ "$status" = 1 ] && [ "$(cat early.err)" = "cmtwatch wss: process $sleeper ended before its first interval did" ] || complain "ended early: $status $(cat early.err)"

# Page by page, on a made-up machine: pages 1 and 2 are the heap, in frames 70 and 3; page 5 is in one that is not tracked.
word() { printf "%016x" "$1" | sed 's/\(..\)\(..\)\(..\)\(..\)\(..\)\(..\)\(..\)\(..\)/\\x\8\\x\7\\x\6\\x\5\\x\4\\x\3\\x\2\\x\1/'; }
words() { for word in "$@"; do printf "$(word "$word")"; done; }
mkdir -p proc/7 sys/kernel/mm/page_idle
echo '7 (made up) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0' >proc/7/stat
page=$(getconf PAGESIZE)
printf '%x-%x rw-p 00000000 00:00 0 [heap]\n%x-%x rw-p 00000000 00:00 0\n' "$page" $((3 * page)) $((5 * page)) $((6 * page)) >proc/7/maps
resident=$((1 << 63))
words 0 $((resident + 70)) $((resident + 3)) 0 0 $((resident + 9)) >proc/7/pagemap
{ words 0 0 0 32; head -c $((66 * 8)) /dev/zero; words 32; } >proc/kpageflags
words 0 0 >sys/kernel/mm/page_idle/bitmap
made_up=(cmtwatch wss --root=proc --sys=sys 7)
"${made_up[@]}" --interval=1ms --json >pages.json || complain "made up: $?"
jq -e --argjson page "$page" '.method == "idle" and .not_page_by_page_because == null and (.samples[0] |
  .working_set_bytes == 0 and .resident_bytes == 3 * $page and .not_tracked_bytes == $page)' pages.json >/dev/null ||
  complain "made up: $(cat pages.json)"
[ "$(od -An -tx1 sys/kernel/mm/page_idle/bitmap | tr -d ' \n')" = 08000000000000004000000000000000 ] ||
  complain "marks: $(od -An -tx1 sys/kernel/mm/page_idle/bitmap)"
"${made_up[@]}" -w --interval=20ms --csv --plot=pages.html >pages.csv &
watch=$!
until_true 'printf "\0" | dd of=sys/kernel/mm/page_idle/bitmap bs=1 seek=8 conv=notrunc && [ "$(grep -c ",$page,$((3 * page)),0,$page$" pages.csv)" -ge 3 ]'
kill -INT $watch
wait $watch || complain "made up, Ctrl-C: $?"
awk -F, -v page="$page" 'NR > 1 && $3 > page { exit 1 }' pages.csv || complain "made up: $(cat pages.csv)"
"${made_up[@]}" --interval=1ms >pages.text
grep -qx "page by page, by the kernel's bitmap of idle pages" pages.text && grep -q '^up to .* are not tracked' pages.text || complain "$(cat pages.text)"

# The one page that was touched is used again, with no other page between.
grep -q 'which pages, a row for every' pages.html && grep -q 'reuse distance' pages.html || complain "the picture of pages"
sed -n '/"schema": "cmt.wss/,$p' pages.html | tr -d ' \n' | grep -qE '"first_uses":1,"lower_bounds":\[\{"distance_pages":1,"uses":[0-9]+\}\],"upper_bounds":\[\{"distance_pages":1,' ||
  complain "the reuse distance: $(grep -o '"reuse_distance.*' pages.html | head -c 400)"

# If pages cannot be measured, a line has the reason; --method=idle is refused.
rm proc/kpageflags
status=0; "${made_up[@]}" --method=idle 2>err || status=$?
[ "$status" = 1 ] && [ "$(cat err)" = "cmtwatch wss: --method=idle: proc/kpageflags may not be read" ] || complain "no flags: $status $(cat err)"
: >proc/7/clear_refs
printf '%x-%x rw-p 00000000 00:00 0 [heap]\nRss: 2048 kB\nReferenced: 2048 kB\nAnonHugePages: 2048 kB\n' "$page" $((3 * page)) >proc/7/smaps
"${made_up[@]}" --interval=1ms >mappings.text || complain "mappings: $?"
grep -q '^mapping by mapping, by clear_refs: proc/kpageflags may not be read; ' mappings.text || complain "$(cat mappings.text)"
grep -q '^up to 2.00 MiB are in huge pages' mappings.text || complain "huge pages: $(cat mappings.text)"
rm proc/7/clear_refs
status=0; "${made_up[@]}" 2>err || status=$?
[ "$status" = 1 ] && [ "$(cat err)" = "cmtwatch wss: the kernel does not tell what is touched (CONFIG_PROC_PAGE_MONITOR): there is no proc/7/clear_refs" ] ||
  complain "no clear_refs: $status $(cat err)"
status=0; cmtwatch wss 2147483646 2>err || status=$?
[ "$status" = 1 ] && [ "$(cat err)" = "cmtwatch wss: there is no process 2147483646" ] || complain "nobody: $status $(cat err)"
exit $failed
