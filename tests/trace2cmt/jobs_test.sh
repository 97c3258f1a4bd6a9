# --jobs: output, messages and exit status of trace2cmt are the same with one thread, with two and with five. Checks whole
# traces, damaged ones, texts and foreign logs.

failed=0
complain() { echo "wrong: $*" >&2; failed=1; }

# run JOBS ARGUMENT...: writes output, messages and status to one file.
run() {
  local status=0
  trace2cmt --jobs="$@" >out 2>err || status=$?
  { cat out; echo "-- status $status"; cat err; } >"with_$1"
}
same() {  # same ARGUMENT...; of the numbers of threads in $many
  run 1 "$@"
  for jobs in $many; do
    run $jobs "$@"
    cmp -s with_1 with_$jobs || complain "trace2cmt $*: --jobs=$jobs differs from --jobs=1"
  done
}

many='2 5'

# A part of a real trace, longer than a piece of text and than a block of a .cmt.
trace2cmt --slice=:40000 -o real.cmt "$SOURCE/corpus/jq.cmt"
trace2cmt -s real.cmt >real.trace
[ "$(wc -l <real.trace)" -gt 30000 ] || complain "the sample is small"
# A log with addresses but no tags. Some blocks are freed twice, some only after their address is used again.
awk 'BEGIN { for (i = 0; i < 15000; ++i) {
  printf "malloc(%d) = %x\n", i % 300, 4096 + 512 * (i % 999)
  if (i % 97 != 5) printf "free(%x)\n", 4096 + 512 * (i % 999) } }' >unnamed.trace
{ sed -n 1,15000p real.trace; echo 'malloc(8'; sed -n 15001,30000p real.trace; } >wrong.trace
head -c 500000 real.trace >cut.trace
head -c $(($(stat -c %s real.cmt) - 40)) real.cmt >cut.cmt
gzip -c wrong.trace >wrong.trace.gz
for file in real.cmt wrong.trace cut.cmt cut.trace unnamed.trace wrong.trace.gz; do
  [ $file != cut.cmt ] || many=5
  same --to=cmt $file
  same --to=text $file
  same --verify $file
done
same --strict --to=text wrong.trace
same --strict --to=cmt wrong.trace
same --to=csv wrong.trace
same --to=text --slice=1000:30000 --anonymise real.cmt
same --to=cmt real.trace wrong.trace

for file in "$SOURCE"/format-spec/vectors/{cut_,touch}*.{cmt,text} "$SOURCE"/tests/logs/samples/{heaptrack,valgrind,mtrace,kdump_several}.log; do
  [ -e "$file" ] || continue
  same --to=text "$file"
done
for file in "$SOURCE"/format-spec/vectors/bad_{names,tail}*.cmt; do
  [ ! -e "$file" ] || same --verify "$file"
done

for wrong in 0 -1 many 1025; do
  status=0
  trace2cmt --jobs=$wrong real.cmt >out 2>err || status=$?
  [ "$status" = 2 ] && grep -q -- '--jobs' err || complain "--jobs=$wrong: $status, $(cat err)"
done
exit $failed
