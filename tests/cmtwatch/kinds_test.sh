# cmtwatch record --plot: the picture adds processes up as peak and show do, also if some could not be read, and states
# its metric.

. "$SOURCE/tests/cmtwatch/common.sh"
. "$SOURCE/tests/cmtwatch/made_up.sh"
rm -rf proc ./*.db ./*.svg ./*.html ./*.json

# numbers PAGE: prints the JSON of the picture.
numbers() { sed -n '\|id="numbers">|,\|</script>|p' "$1" | sed 's|^<script[^>]*>||; s|</script>$||'; }

# agrees NAME: checks that at each moment the line, the kinds and the processes of NAME.html add up to the figures of
# show.
agrees() {
  numbers "$1.html" >"$1.json"
  local moments bytes told=''
  moments=$(moments "$1.db")
  for tick in $(seq "$moments"); do
    told+="$(cmtwatch show --json --at="$(ask "$1.db" "select begin_ns || 'ns' from tick where id = $tick")" "$1.db" | jq -c '[.tick, .bytes]') "
  done
  jq -c 'def at($i): map(.bytes[$i]) | add;
    range(.bytes | length) as $i | (.kinds | map(select(.metric != "swap")) | at($i)) as $kinds |
    (if .processes == [] then $kinds else .processes | at($i) end) as $processes |
    if .bytes[$i] == $kinds and $kinds == $processes then [$i + 1, $kinds] else "\(.bytes[$i]), \($kinds), \($processes)" end' \
    "$1.json" | tr '\n' ' ' >drawn
  [ "$(cat drawn)" = "$told" ] && [ "$moments" -gt 0 ] || complain "$1: drawn $(cat drawn), told $told"
  cmtwatch peak --json "$1.db" >peak.json
  jq -e --slurpfile drawn "$1.json" '$drawn[0] as $drawn | .bytes == ($drawn.bytes | max) and
    .begin_ns == $drawn.time_ns[$drawn.bytes | index(max)]' peak.json >/dev/null || complain "$1: another peak"
}

# Shared memory of two processes is drawn once: 80 MB, which are resident in both.
hold 80 3 2
cmtwatch record -o shared.db -r --count=3 --interval=1ms --max-cost=100 --plot=shared.html "$parent" >said || complain "--plot: $?"
cmtwatch record -o shared.db -r --count=1 --plot=shared.svg "$parent" >said || complain "--plot, going on: $?"
cmtwatch record -o shared.db -r --count=1 --plot=shared.html "$parent" >said || complain "--plot, a page: $?"
let_go
agrees shared
jq -e '.metric == "pss" and all(.processes[]; .metric == "pss") and (.processes | length) == 2 and (.bytes | max) < 160e6 and
  all(.kinds[] | select(.name == "shared memory").bytes[]; . >= 80e6 and . < 90e6)' shared.json >/dev/null ||
  complain "what is shared: $(cat shared.json)"
[ "$(ask shared.db 'select min(sum) > 160000000 from (select sum(resident_bytes) as sum from process_sample group by tick_id)')" = 1 ] ||
  complain "nothing is shared"
grep -qE '5 moments, most [0-9.]+ MiB pss at ' shared.html && grep -q '>memory (pss)<' shared.svg && grep -q '>in all (pss)<' shared.svg &&
  grep -q '>shared memory<' shared.svg || complain "the picture: $(head -c 3000 shared.svg)"

# First some mappings can be read, then none. Sums of mappings without mappings have no kinds.
process 7 77 server
process 8 88 guarded
write proc/8/statm '100 9 2 0 0 0 0'
rm proc/8/smaps
page=$(getconf PAGESIZE)
draw() { cmtwatch record --root=proc -o mixed.db --count=1 --interval=1ms --plot="$1" "${@:2}" 7 8 >said 2>&1 || complain "$*: $(cat said)"; }
draw mixed.svg
grep -q ">memory (pss or rss)<" mixed.svg && grep -q '>in all (pss or rss)<' mixed.svg && grep -q '>heap (pss)<' mixed.svg &&
  grep -q '>mappings not read (rss)<' mixed.svg && grep -q '>server 7 (pss)<' mixed.svg && grep -q '>guarded 8 (rss)<' mixed.svg &&
  grep -q '>swapped out<' mixed.svg && grep -q 'most [0-9.]* KiB pss or rss at ' mixed.svg || complain "some of both: $(cat mixed.svg)"
mv proc/7/smaps proc/7/away
draw mixed.html
mv proc/7/away proc/7/smaps
write proc/7/smaps_rollup "$(mapping 1000-8000 ---p '[rollup]' 20 11)"
draw mixed.html --measure=totals
draw mixed.html --measure=statm
draw mixed.html
agrees mixed
jq -e --argjson page "$page" '.metric == "pss or rss" and (.processes | map({(.name): .metric}) | add) == {server: "pss or rss", guarded: "rss"} and
  (.kinds | map({(.name): .bytes}) | add) as $kinds |
  $kinds.heap == [7168, 0, 0, 0, 7168] and $kinds["not told apart"] == [0, 0, 11264, 0, 0] and
  $kinds["mappings not read"] == [9 * $page, 14 * $page, 9 * $page, 14 * $page, 9 * $page]' mixed.json >/dev/null ||
  complain "as it could be read: $(cat mixed.json)"

# If no proportional sets are recorded, resident sets are drawn for all.
cmtwatch record --root=proc -o resident.db --count=2 --interval=1ms --max-cost=100 --measure=statm --plot=resident.html 7 8 >said 2>&1
agrees resident
jq -e '.metric == "rss" and all(.processes[]; .metric == "rss")' resident.json >/dev/null || complain "resident: $(cat resident.json)"
grep -q 'most [0-9.]* KiB rss at ' resident.html || complain "most resident"

# A single process has no panel by process.
cmtwatch record --root=proc -o one.db --count=1 --plot=one.html 7 >said 2>&1
agrees one
# A library has no more than its own memory, although the kernel merges its data with the memory that follows.
if /usr/bin/python3 -c 'import _decimal; raise SystemExit(not _decimal.__file__)' 2>/dev/null; then
  cmtwatch record --interval=1h -o joined.db --plot=joined.html -- /usr/bin/python3 -c 'import os
memory = bytearray(64 << 20)
import _decimal
os._exit(0)' || complain "joined: $?"
  cmtwatch peak --json joined.db >joined.json
  jq -e '[.parts[] | select(.name | startswith("/")).resident_bytes] | max < 32000000' joined.json >/dev/null &&
    jq -e '.parts[] | select(.name == "anonymous").resident_bytes > 67000000' joined.json >/dev/null ||
    complain "whose memory: $(jq -c '[.parts[] | [.name, .resident_bytes]]' joined.json)"
  jq -e '[.processes[0].mappings[].zero_data_bytes] | max > 0' joined.json >/dev/null || complain "no library has zero data"
else
  echo "skipped: no _decimal of its own file: a library below anonymous memory"
fi
exit $failed
