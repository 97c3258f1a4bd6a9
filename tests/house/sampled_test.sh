# A sampled trace (version 2 of .cmt) in each output of each tool: one line refuses it, or the output says that it is sampled.

cp "$SOURCE/format-spec/vectors/sampled.cmt" .
printf '#cmt text=1\nmalloc(8) = 1000<1>\nfree(1000<1>)\n#cmt end=complete\n' >full.trace
trace2cmt -o full.cmt full.trace
failed=0
complain() { echo "$*" >&2; failed=1; }

# refused COMMAND...: exit 1, one line that names the file and says why and what serves, and no output.
refused() {
  "$@" >out 2>err </dev/null && status=0 || status=$?
  [ "$status $(wc -l <err)" = '1 1' ] && [ ! -s out ] && [ ! -e made ] && [ ! -e made.svg ] && [[ $(cat err) == *${reason:-"sampled.cmt: a sampled trace "}* ]] ||
    complain "not refused in a line: $*: $status $(cat err out | head -c 500)"
  rm -rf made made.svg
}
# says COMMAND...: done, and the output names samples.
says() {
  "$@" >out 2>err </dev/null && status=0 || status=$?
  [ "$status" = 0 ] && [[ $(cat out err; zcat -f made made.svg 2>err) == *sampl* ]] || complain "does not say that it is sampled: $*: $status $(cat err)"
}
# either COMMAND...: one of both. lifetimes estimates, unless the trace lacks stacks or the other trace is a full one.
either() {
  "$@" >out 2>err </dev/null && status=0 || status=$?
  if [ "$status" = 0 ]; then says "$@"; else rm -rf made made.svg; reason=.cmt: refused "$@"; fi
}

for form in text legacy rep csv parquet heaptrack; do refused trace2cmt --to=$form -o made sampled.cmt; done
refused trace2cmt -o made full.cmt sampled.cmt
refused trace2cmt -o made sampled.cmt sampled.cmt
for options in '' --slice=3:12 --thread=0 --anonymise --time-resolution=1us --level=9 --jobs=1; do
  trace2cmt $options -o copy.cmt sampled.cmt
  [ "$(od -An -tu4 -j8 -N4 copy.cmt)" -eq 2 ] || complain "trace2cmt $options: not version 2"
  says trace2cmt --info copy.cmt
  trace2cmt --verify copy.cmt >out || complain "trace2cmt $options: $(cat out)"
done
trace2cmt --info --json sampled.cmt >info.json
jq -e '.sampling_interval_bytes == 524288 and .samples.allocated_blocks == 6 and .samples_lost == 3 and (has("allocated_bytes") | not)' info.json >out ||
  complain "info: $(cat info.json)"

# A slice begins with the interval at its begin, and so does a slice of a slice.
trace2cmt -o copy.cmt sampled.cmt
[ "$(trace2cmt --info --json copy.cmt | jq .samples_lost)" = 3 ] || complain 'a copy has other lost samples'
lifetimes --by=size sampled.cmt >out
grep -q '  3 samples lost, for which the recorder had no room' out || complain "lost samples: $(cat out)"
decode() { PYTHONPATH=$SOURCE/python python3 -B -m cmt_trace --check "$1"; }
trace2cmt --slice=9:12 -o slice.cmt sampled.cmt
trace2cmt --slice=3: -o again.cmt slice.cmt
decode slice.cmt | sed -n 5,7p >begin
diff begin - <<'END' || complain 'the begin of a slice'
sampling_interval(1048576)
malloc(1048576) = 7f1300000010<4> time=3000
mark("slice 9:12") time=5000
END
[ "$(decode again.cmt | sed -n 5p)" = 'sampling_interval(1048576)' ] || complain "a slice of a slice: $(decode again.cmt)"
# The interval that rises in the slice is not that of its begin.
trace2cmt --slice=11: -o slice.cmt sampled.cmt
[ "$(decode slice.cmt | grep -c 'sampling_interval(4194304)')" = 1 ] || complain 'a slice before the interval rises'
# Events of sampling in a trace of all blocks, and an interval that falls.
for line in 'unsample(1000<1>)' 'sampling_interval(4096)' '#cmt sampled=4096'; do
  printf '#cmt text=1\n%s\nmalloc(8) = 1000<1>\n' "$line" >wrong.trace
  trace2cmt -o wrong.cmt wrong.trace 2>err && complain "accepted: $line"
  [ "$(cat err)" = 'trace2cmt: wrong.trace:2: a text trace is never sampled: read the .cmt that it was made from' ] || complain "$(cat err)"
done

for options in '' --summary --json --csv --counts --leaks --totals --annotate --plot=made.svg --by=function --by=size --by=thread \
  '--by=function --json' '--by=function --csv' '--by=size --diff=full.cmt' --pprof=made --speedscope=made --folded \
  '--slice=3:5 --by=size' --baseline=full.cmt; do either lifetimes $options sampled.cmt; done
either lifetimes --by=size --diff=sampled.cmt full.cmt
either lifetimes --baseline=sampled.cmt full.cmt
for options in '' --summary --json --csv --leaks --totals --annotate '--by=size --at=3' --plot=made.svg --by=function '--by=size --json'; do
  refused overhead $options sampled.cmt
done
for options in '' --json --text '-o made'; do says cmtreport $options sampled.cmt; rm -f made; done
for options in '' --json --text '-o made'; do says cmtreport --diff=sampled.cmt $options sampled.cmt; rm -f made; done
for options in --pages --pool=python '--diff=sampled.cmt --pool=python' full.cmt; do refused cmtreport $options sampled.cmt; done
reason='one trace is sampled and the other is not' refused cmtreport --diff=full.cmt sampled.cmt
reason='one trace is sampled and the other is not' refused cmtreport --diff=sampled.cmt full.cmt
cmtreport --json sampled.cmt | jq -e '.live_over_time | (.bytes | length) == 14 and (.event | last) == 14 and (.time_ns | length) == 14 and
  ([.bytes_low, .bytes, .bytes_high] | transpose | all(.[0] <= .[1] and .[1] <= .[2]))' >out || complain "live bytes over time: $(cat out)"
for options in '' --json --csv --plot=made.svg --trim-at=end -v '-v -o made' --verify --tune '--tune --json'; do
  [[ $options == --[vt][eu]* ]] || options+=' --runs=1'
  refused cmtreplay --alloc=libc $options sampled.cmt
done
refused cmtreplay --alloc=libc --same-program sampled.cmt full.cmt
mkdir traces && cp full.cmt sampled.cmt traces
refused cmtreplay --alloc=libc traces
refused cmtreplay --alloc=libc --tune --results=made traces
if [ -n "${ASAN_OPTIONS:-}" ]; then echo 'skipped: explain, which reads this process'; else either cmtwatch explain --trace=sampled.cmt $$; fi
exit $failed
