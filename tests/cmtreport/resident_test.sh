# Each sentence about resident and live memory has figures of one moment, or bounds for all of one time.

failed=0
complain() { echo "$*" >&2; failed=1; }
words() { cmtreport "$@" 2>err | tr -s ' \n' ' '; }
# trace NAME: a text trace of what is read.
trace() { { echo '#cmt text=1'; cat; echo '#cmt end=complete'; } >"$1"; }

# 40 MiB are live at the largest sample, and freed before the interval ends.
awk 'BEGIN {
  for (i = 1; i <= 40; ++i) printf "malloc(1048576) = %x<%d> time=%d\n", 4096 * 4096 * i, i, i * 1000
  print "sample(62914560) time=41000"
  for (i = 1; i <= 40; ++i) printf "free(%x<%d>) time=%d\n", 4096 * 4096 * i, i, 41000 + i
  print "sample(62914000) time=42000"
  print "mark(\"end\") time=900000000"
}' | trace burst.trace
words burst.trace >text
grep -qF 'at 41.0 us, where the resident memory is largest (60.0 MiB), 40.0 MiB are live' text || complain "live at the largest sample: $(cat text err)"
cmtreport --json burst.trace >json
jq -e '[.findings[].kind] | index("burst") != null' json >out || complain "no burst: $(jq -c '[.findings[].kind]' json)"
# A recording that ends while the memory is live does not know how long that lasts.
printf '%s\n' 'mark("begin") time=0' 'malloc(1048576) = 1000000<1> time=990000000' 'mark("end") time=1000000000' | trace risen.trace
cmtreport --json risen.trace | jq -e '[.findings[].kind] | index("burst") == null' >out || complain "a burst that is not over"
jq -e '.processes[0] | .largest_resident_bytes == 62914560 and .largest_resident_live_bytes == 41943040 and .largest_resident_event == 41' json >out ||
  complain "live at the largest sample: $(jq '.processes[0]' json)"
# The moments have the last sample of their interval with what was live at that one.
jq -e '.moments | .resident_live_bytes | map(. // -1) | max == 0' json >out || complain "live at the samples: $(jq -c .moments.resident_live_bytes json)"
jq -e '.moments as $m | [range(1; $m.position | length) | select($m.resident_position[.] != null) | $m.resident_position[.] <= $m.position[.]] | all' json >out ||
  complain "a sample is after its moment"

# Memory stays resident for most of the time, and is live at the largest sample.
awk 'BEGIN {
  for (i = 1; i <= 100; ++i) printf "malloc(1048576) = %x<%d> time=%d\n", 4096 * 4096 * i, i, i * 1000000
  print "sample(106000000) time=100500000"
  for (i = 1; i <= 99; ++i) printf "free(%x<%d>) time=%d\n", 4096 * 4096 * i, i, 101000000 + i
  for (i = 1; i <= 60; ++i) printf "sample(%d) time=%d\n", 105000000 - i, 110000000 + i * 10000000
}' | trace idle.trace
sed 's/ time=.*//' idle.trace >events.trace
words idle.trace >text
grep -qF 'from 120 ms to 710 ms, at least 100 MiB are resident and at most 1.00 MiB live: the rest is the allocator'"'"'s own, or other memory (code, stacks, mappings, older blocks); up to 100 MiB were live before' text ||
  complain "retained: $(cat text err)"
! grep -q 'largest' text || complain "the largest sample, too: $(cat text)"
words events.trace >text
grep -qF 'from event 201 to event 260, at least 100 MiB are resident' text || complain "without times: $(cat text err)"
cmtreport --json idle.trace >json
jq -e '[.findings[] | select(.kind == "retained")] | length == 1 and .[0].numbers.resident_bytes_min == 104999940 and .[0].numbers.live_bytes_max == 1048576' json >out ||
  complain "retained: $(jq -c .findings json)"

# Where the memory is used, nothing is retained.
awk 'BEGIN {
  for (i = 1; i <= 100; ++i) printf "malloc(1048576) = %x<%d> time=%d\n", 4096 * 4096 * i, i, i * 1000000
  for (i = 1; i <= 60; ++i) printf "sample(%d) time=%d\n", 105000000 - i, 110000000 + i * 10000000
}' | trace used.trace
words used.trace >text
! grep -q 'resident' text || complain "nothing is retained: $(cat text)"

# Live bytes far above the resident ones.
trace reserved.trace <<'END_OF_TRACE'
malloc(5368709120) = 7f0000000010<1> time=1000
sample(12582912) time=2000
sample(12582912) time=3000
END_OF_TRACE
words reserved.trace >text
grep -q ' 1\. 4.99 GiB live and not resident, at 2.00 us at 2.00 us, 5.00 GiB are live and 12.0 MiB resident: the difference was not yet written to, was given back, or was swapped out' text ||
  complain "not resident: $(cat text err)"

# Each of several processes has sentences of its own. At a moment the samples of all are added up, as are their live bytes.
words idle.trace reserved.trace >text
grep -qF 'idle.trace: from ' text && grep -qF 'reserved.trace: at ' text || complain "two processes: $(cat text err)"
cmtreport --json idle.trace reserved.trace >json 2>err
jq -e '.moments.resident_position == null and (.moments.resident_live_bytes | max) > 5368709120' json >out || complain "two processes: $(jq -c .moments.resident_live_bytes json)"

# The samples of overhead have the live bytes of the resident ones' moment.
overhead --json burst.trace >json
jq -e '.samples[-1] | .resident_bytes == 62914000 and .resident_event == 82 and .resident_live_bytes == 0' json >out &&
  jq -e '.peak | .event == 40 and .resident_bytes == null' json >out || complain "overhead: $(jq -c '.peak, .samples[-1]' json)"
exit $failed
