# cmtwatch run --trace gives resident and live bytes of a command at the same moments.

. "$SOURCE/tests/cmtwatch/common.sh"
command -v cc >/dev/null || { echo "skipped: no C compiler"; exit 77; }
cc -O1 -o asker "$SOURCE/tests/cmtwatch/asker.c" || { echo "skipped: the C compiler does not work"; exit 77; }

# lead OPTION... -- COMMAND...: lets the command go on from step to step when some samples were taken at it; its exit status.
# The page holds all numbers as JSON. Descriptor 7 ends the lines where cmtwatch does not even open them.
lead() {
  rm -f at.* go.* lines page.html
  mkfifo lines
  local begin left1=5 left2=5 made1='' made2='' also=at.1 when
  begin=$(micros "$EPOCHREALTIME")
  cmtwatch run -w --interval=5ms --max-cost=100 --metric=rss --plot=page.html -o lines "$@" 2>err 7>lines &
  [ "${*: -1}" = fork ] && also=at.3
  while read -r line; do
    [[ $line == 'control group '* ]] || last=$line
    sample_time "$begin" "$line" || continue  # the first line of a sample's tree
    [ -z "$made1" ] && [ -e at.1 ] && [ -e "$also" ] && made1=$(made_at "$also")
    [ -z "$made2" ] && [ -e at.2 ] && made2=$(made_at at.2)
    [ -n "$made1" ] && [ "$when" -gt "$made1" ] && left1=$((left1 - 1))
    [ "$left1" = 0 ] && : >go.1
    [ -n "$made2" ] && [ "$when" -gt "$made2" ] && left2=$((left2 - 1))
    [ "$left2" = 0 ] && : >go.2
  done <lines
  status=0; wait $! || status=$?
  [ -s page.html ] || { echo "cmtwatch run: exit $status without a page: $(cat err)" >&2; exit 1; }
  sed -n 's/.*id="numbers">//; /"schema": "cmt.watch\/1"/,/^<\/script>/p' page.html | sed '/^<\/script>/d; 1s/^/{/' >numbers.json
}

lead --trace=a.cmt -- ./asker
[ "$status" = 3 ] || complain "the status: $status $(cat err)"
echo "$last" | grep -qE '^at the peak: [0-9.]+ [KM]iB live in [0-9,]+ blocks; .* is other memory; fragmentation [0-9.]+; [0-9,]+ events in a\.cmt, nothing was lost; collecting took [0-9.]+ % of a processor$' ||
  complain "the last line: $last"
jq -e '
  def about(bytes): . >= bytes and . < bytes + 200000;
  (.samples | all(.beyond_live_bytes == (if .live_bytes == null then null else .bytes - .live_bytes end))) and
  ([.samples[] | select(.live_bytes != null and (.live_bytes | about(10000000)) and .live_blocks >= 1000)] | length) >= 3 and
  ([.samples[-3:][] | select(.live_bytes | about(1000000))] | length) == 3 and
  ([.samples[] | .bytes] | max) > 10000000 and
  .samples[-1].bytes > 10 * .samples[-1].live_bytes - 5000000 and
  .peak.live_bytes == (.peak.begin_ns as $at | .samples[] | select(.begin_ns == $at) | .live_bytes) and
  (.traced.traces | length) == 1 and (.traced.traces[0] | .path == "a.cmt" and .program == "asker" and .whole and
    .events >= 1900 and (.live_bytes_peak | about(10000000))) and
  .traced.traces[0].begin_ns < ([.samples[] | select(.bytes >= 10000000)][0].end_ns) and
  .traced.events_lost_or_in_doubt == 0 and .traced.cost_cpu_ns > 0' numbers.json >/dev/null ||
  complain "inside and outside: $(jq -c '[.traced, .peak, .samples[-1]]' numbers.json)"
grep -q '>live: asked for<\|"live: asked for"' page.html || complain "the picture has no live bytes"

# A sampled trace, here of each block: the estimates are the truth. The intervals are in each form.
lead --trace=s.cmt --sample-bytes=1 -- ./asker
[ "$status" = 3 ] || complain "sampled: $status $(cat err)"
echo "$last" | grep -qE '^at the peak: [0-9.]+ [KM]iB \([^)]+\) live in [0-9,]+ \([0-9,]+ to [0-9,]+\) blocks, estimated from [0-9,]+ samples \(95 % intervals\); .*; fragmentation [0-9.]+ \([0-9.]+ to [0-9.]+\); [0-9,]+ events in s\.cmt, nothing was lost' ||
  complain "sampled, the last line: $last"
jq -e '
  def about(bytes): . >= bytes and . < bytes + 200000;
  ([.samples[] | select(.live_bytes != null and (.live_bytes | about(10000000)) and .live_samples >= 1000 and
    .live_bytes_low <= .live_bytes and .live_bytes <= .live_bytes_high)] | length) >= 3 and
  .traced.traces[0].sampling_interval_bytes == 1' numbers.json >/dev/null || complain "sampled: $(jq -c '[.traced, .peak]' numbers.json)"
grep -q 'live, 95 % interval: upper end' page.html || complain 'the picture has no interval'
[ "$(trace2cmt --info --json s.cmt | jq .sampling_interval_bytes)" = 1 ] || complain 'the trace is not sampled'
status=0; cmtwatch run --trace=t.cmt --sample-bytes=1 --csv -o rows.csv --interval=10ms -- sleep 0.1 2>err || status=$?
[ "$status" = 0 ] && head -n 1 rows.csv | grep -q ',live_bytes,live_blocks,live_bytes_low,live_bytes_high,live_samples,' || complain "sampled, CSV: $status $(head -n 1 rows.csv) $(cat err)"
for words in '--sample-bytes=1K' '--trace --sample-bytes=0' '--trace --sample-bytes=2G' '--trace --sample-bytes=x'; do
  status=0; cmtwatch run $words -- true 2>err || status=$?
  [ "$status" = 125 ] && grep -q -- --sample-bytes err || complain "$words: $status $(cat err)"
done

# With -r each process of the family has its own, and no collector is counted among them.
lead -r -v --trace='f.%p.cmt' -- ./asker fork
[ "$status" = 3 ] || complain "a family's status: $status $(cat err)"
jq -e '
  ([.samples[] | select((.by_process | length) == 2 and (.live_bytes // 0) >= 15000000)] | length) >= 1 and
  (.samples | all(.live_bytes == ([.by_process[] | .live_bytes // empty] | if . == [] then null else add end))) and
  ([.samples[] | .by_process[] | .name] | unique) - ["asker", "cmtwatch"] == [] and
  any(.samples[].by_process[]; .live_bytes != null and .live_bytes >= 5000000 and .live_bytes < 5200000) and
  (.traced.traces | map(.pid) | unique | length) == 2' numbers.json >/dev/null ||
  complain "a family: $(jq -c '[.traced, .samples[-1]]' numbers.json)"
[ "$(ls f.*.cmt | wc -l)" = 2 ] || complain "traces of a family: $(ls)"

# Nor is a supervisor counted when its program has ended.
cc -O1 -w -o supervisor "$SOURCE/tests/cmtwatch/supervisor.c"
lead -r -v --trace='o.%p.cmt' -- sh -c './supervisor; : >at.1
  until [ -e go.1 ]; do sleep 0.01; done; : >at.2
  until [ -e go.2 ]; do sleep 0.01; done; exit 3'
[ "$status" = 3 ] && jq -e --argjson supervisor "$(cat supervisor.pid)" '(.samples | length) >= 10 and
  all(.samples[].by_process[]; .pid != $supervisor)' numbers.json >/dev/null ||
  complain "who keeps a collector: $status $(jq -c '.samples[4]' numbers.json)"

# Without -r only the command is traced; CSV has columns for live bytes.
cmtwatch run --trace=c.cmt --csv -o c.csv --interval=5ms -- sh -c 'perl -e "sleep 0"; exit 4' || status=$?
[ "$status" = 4 ] && [ "$(ls c*.cmt)" = c.cmt ] || complain "a child is traced: $status $(ls c*.cmt)"
[[ $(head -n 1 c.csv),group_ == begin_ns,end_ns,pss_bytes,processes,not_readable,live_bytes,live_blocks,not_traced,wall_ns,group_* ]] &&
  awk -F, 'NR == 1 { columns = NF } NF != columns { exit 1 }' c.csv || complain "as CSV: $(head -n 2 c.csv)"

# A killed command has a whole trace, and nothing is reported as lost.
status_of cmtwatch run --trace=k.cmt -- perl -e '@kept = map { "x" x 1000 } 1..1000; kill KILL => $$' 2>/dev/null
[ "$status" = 137 ] && grep -q 'events in k.cmt, nothing was lost' err || complain "killed: $status $(cat err)"

# A trace that could not be written to its end is not whole.
status_of bash -c 'ulimit -f 1500; exec cmtwatch run --trace=l.cmt -- perl -e "\$kept[rand 2000] = q(x) x rand 3000 for 1..600000"'
grep -qE 'events in l.cmt, (.*, )?1 trace could not be written to the end: File too large, 1 not ended' err ||
  complain "a limit on file sizes: $status $(cat err)"

# A command that cannot be traced is reported in a line, and still watched.
if echo 'int main(void) { return 5; }' >static.c && cc -static static.c -o static.out 2>/dev/null; then
  status_of cmtwatch run --trace -- ./static.out
  [ "$status" = 5 ] && grep -qx 'cmtwatch run: ./static.out is linked statically: nothing can be recorded; link it without -static' err &&
    grep -qx 'nothing was traced' err && grep -q '^peak ' err || complain "a static program: $status $(cat err)"
fi
[ "$(ls | grep -c '^static.out.*cmt')" = 0 ] || complain "a trace of nothing"
status_of cmtwatch run --trace=nowhere/x.cmt --json -- true
[ "$status" = 125 ] && grep -q '^libcmttrace: cannot create .*nowhere/x.cmt' err && sed -n '/^{/,$p' err |
  jq -e '.traced.traces == [] and .peak.live_bytes == null' >/dev/null || complain "nowhere: $status $(cat err)"
status_of cmtwatch run --trace=nowhere/x.cmt -- sh -c 'exit 6'
[ "$status" = 6 ] || complain "nowhere, and the command's own status: $status $(cat err)"
exit $failed
