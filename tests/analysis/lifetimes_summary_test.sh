# Checks that the summaries of lifetimes equal awk's counts of the annotated lines, and that merged summaries equal one
# run over all traces.

golden=$SOURCE/tests/analysis/golden
failed=0
complain() { echo "$*" >&2; failed=1; }

# Two traces whose tags rise from one to the other, so that they are a trace together.
#
# trace FIRST_TAG SEED: 20,000 events, some of them by a second thread, a few reallocations, some blocks left.
trace() {
  awk -v tag="$1" -v seed="$2" 'BEGIN {
    srand(seed)
    for (event = 0; event < 20000; event++) {
      thread = rand() < 0.3 ? " thread=1" : ""
      if (live < 20 || rand() < 0.45) {
        block[live++] = sprintf("%x<%d>", 4096 + 256 * tag, tag)
        printf "malloc(%d) = %s%s\n", rand() * 250, block[live - 1], thread
        tag++
      } else {
        pick = rand() < 0.5 ? live - 1 : int(rand() * live)
        if (rand() < 0.1) {
          new = sprintf("%x<%d>", 4096 + 256 * tag, tag); tag++
          printf "realloc(%s, %d) = %s%s\n", block[pick], rand() * 250, new, thread
          block[pick] = new
        } else {
          printf "free(%s)%s\n", block[pick], thread
          block[pick] = block[--live]
        }
      }
    }
  }'
}
trace 1 11 >a.trace
trace 30000 12 >b.trace
cat a.trace b.trace >all.trace

# --counts is what the original makes of annotated lines.
lifetimes --counts a.trace >counts
lifetimes a.trace | grep -v malloc | sed 's/.* # //' | awk '{ print $4, $1 }' | LC_ALL=C sort -bg -k 1,2 | uniq -c |
  diff - counts >difference || complain "--counts differs: $(head -n 3 difference)"
lifetimes --counts --clock=bytes a.trace | awk '{ n += $1 } END { print n }' >by_bytes
[ "$(cat by_bytes)" = "$(awk '{ n += $1 } END { print n }' counts)" ] || complain "--counts --clock=bytes loses blocks"

# The summary's sums are those of the counted pairs.
lifetimes --csv a.trace | awk -F, 'NR > 1 { ended += $5; short += $6 } END { print ended, short }' >from_csv
awk '{ ended += $1; if ($2 <= 256) short += $1 } END { print ended, short }' counts | diff - from_csv ||
  complain "--csv and --counts differ"
lifetimes --leaks a.trace | grep -c '^# leak: ' >leaks
lifetimes --csv a.trace | awk -F, 'NR > 1 { n += $13 } END { print n }' | diff - leaks || complain "--csv and --leaks differ"

# Merged, everything but the peaks is as in one run.
for clock in events bytes; do
  for name in a b all; do lifetimes --json --clock=$clock $name.trace >$name.json; done
  lifetimes --merge --json a.json b.json >merged.json
  for file in all merged; do sed '/"inputs"/,/"peak_live_bytes_sum"/d' $file.json >$file.rest; done
  diff all.rest merged.rest >difference || complain "merged by $clock: $(head -n 5 difference)"
  # Keys of 0.1.0 are read, and those of this version without them.
  sed '/"end_live_/d; /"refused_calls"/d' merged.json >old.json
  sed '/"leaked_/d; /"failed"/d' merged.json >new.json
  for keys in old new; do lifetimes --merge --json $keys.json | cmp -s - <(lifetimes --merge --json merged.json) || complain "keys: $keys"; done
  [ "$(grep -c '"peak_event"' merged.json)" = 2 ] || complain "merged: not two peaks"
done
lifetimes --merge --json merged.json | cmp - merged.json || complain "merging one is not the same"
lifetimes --merge merged.json | grep '^peak live of all: from ' >bounds || complain "no bounds of the peak"

# A trace says the same as .cmt, and as golden files.
trace2cmt -o a.cmt a.trace
lifetimes --summary a.cmt | tail -n +2 >from_cmt
lifetimes --summary a.trace | tail -n +2 | diff - from_cmt || complain "the summary of .cmt differs"
for form in json csv summary; do
  lifetimes --$form "$golden/kinds.trace" | diff -u "$golden/kinds.lifetimes.$form" - || complain "--$form differs"
done

refused() {  # refused STATUS WORDS OPTION...
  local status=0 expected=$1 words=$2; shift 2
  lifetimes "$@" >out 2>err || status=$?
  [ "$status" = "$expected" ] && grep -qF -- "$words" err || complain "$*: exit $status, $(cat err)"
}
lifetimes --json --clock=bytes a.trace >bytes.json
lifetimes --json a.trace >events.json
sed 's/lifetimes\/1/lifetimes\/9/' events.json >later.json
sed 's/"failed": 0,//; s/"refused_calls": 0,//' events.json >short.json
head -c 1000 events.json >cut.json
refused 1 'bytes.json: its lifetimes are by another clock than those of events.json' --merge events.json bytes.json
refused 1 'later.json: not a summary: not of schema cmt.lifetimes/1' --merge later.json
refused 1 'short.json: not a summary: no "refused_calls"' --merge short.json
refused 1 'cut.json: offset 0x3e8: not valid JSON' --merge cut.json
head -c 50000000 /dev/zero | tr '\0' ' ' | gzip >bomb.json.gz
refused 1 'bomb.json.gz: unpacks to more than 100 times its size' --merge bomb.json.gz
# Sizes that no memory has: the sums of growth stay at the largest number.
printf 'malloc(640) = 1000<1>\nmalloc(9223372036854775807) = 2000<2>\n' >huge.trace
lifetimes --by=size --json huge.trace | jq -e '.total.growth_bytes == 9223372036854775807' >/dev/null || complain "growth beyond 64 bits"
refused 1 'a.trace: offset 0x0: not valid JSON' --merge a.trace
refused 1 'none.json: No such file or directory' --merge none.json
refused 2 '--leaks does not go with --summary' --summary --leaks a.trace
refused 2 '--summary does not go with --counts' --counts --summary a.trace
refused 2 '--csv does not go with --json' --csv --json a.trace
refused 2 '--clock does not go with --merge' --merge --clock=bytes a.json
refused 2 '--summary of several traces needs --json; --merge adds up what that writes' --summary a.trace b.trace
refused 2 "one FILE at most, not also 'b.trace'" --counts a.trace b.trace
status=0; lifetimes --summary a.trace >/dev/full 2>err || status=$?
[ "$status" = 1 ] && [ "$(cat err)" = "lifetimes: writing: No space left on device" ] || complain "a full disk: $(cat err)"

# By the clock of time, lifetimes and annotations have units that people read.
printf 'malloc(8) = 1000<1> time=1000\nfree(1000<1>) time=2501000\n' >timed.trace
lifetimes --clock=time --summary timed.trace >out
grep -q '^lifetimes, by bytes asked for' out && grep -q ' after 1.00 ms or less  *0 ' out && grep -q '^ 8-9 .* 2.50 ms  2.50 ms' out ||
  complain "no units: $(cat out)"
for tool in lifetimes overhead; do
  "$tool" --clock=time timed.trace | grep '# 8 bytes, allocated 2.50 ms ago' >found || complain "$tool: an age without its unit"
done
# Blocks that are freed while the recording is paused count as live.
{ echo 'mark("cmt_pause")'; echo 'malloc(10) = 1000<1>'; echo 'mark("cmt_pause")'; echo 'mark("cmt_resume")'; } >paused.trace
lifetimes --summary paused.trace >text
grep -qx '  the recording was paused 1 time: blocks freed in a pause count as live' text || complain "a pause: $(cat text)"
lifetimes --json paused.trace >paused.json
grep -q '"pauses": 1' paused.json && lifetimes --merge paused.json | grep -q 'was paused 1 time' || complain "a pause in JSON"
lifetimes --json a.trace | grep -q pauses && complain "no pause"

# A trace without blocks has no stacks that could be missing.
printf '#cmt text=1\nmark("x")\n#cmt end=complete\n' >empty.trace
for tool in lifetimes overhead; do
  $tool --by=function empty.trace >text 2>err && [ ! -s err ] || complain "$tool --by=function: $(cat err)"
  $tool --by=function a.trace >text 2>err && complain "$tool: no stacks, but exit 0"
  grep -q 'call stacks were not recorded' err || complain "$tool without stacks: $(cat err)"
done

exit $failed
