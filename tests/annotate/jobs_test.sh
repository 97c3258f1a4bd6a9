# What lifetimes and overhead write does not depend on how many threads they use: not of sound traces, not of bad ones.

# 10,000 events with blocks that cross batches, a mark, refused calls, and defects of all sorts in the middle and at the end.
awk 'BEGIN {
  for (i = 1; i <= 4000; ++i) {
    printf "malloc(%d) = %x<%d>\n", i % 700 + 1, 4096 + i * 1024, 2 * i
    if (i % 3 == 0) printf "realloc(%x<%d>, 48) = %x<%d>\n", 4096 + i * 1024, 2 * i, 4096 + i * 1024, 2 * i + 1
    if (i > 900 && i % 2 == 0) printf "free(%x)\n", 4096 + (i - 800) * 1024
    if (i % 900 == 0) printf "mark(\"%d\")\ncalloc(4, 8) = 0\n# a comment\n", i
    if (i == 2000) print "free(77)\nnonsense\nfree(1<3>)\nmalloc(32) = 5000<9>"
  }
  print "free(abc)"
}' >made.trace
trace2cmt -o made.cmt made.trace 2>/dev/null
cp "$SOURCE/tests/annotate/golden/bad.trace" bad.trace
head -c "$(($(stat -c %s made.cmt) - 9))" made.cmt >cut.cmt
{ head -n 4000 made.trace; head -c 2000000 /dev/zero | tr '\0' x; } >long.trace  # its last line is no line

for tool in lifetimes overhead; do
  for trace in made.trace made.cmt bad.trace cut.cmt long.trace; do
    for options in "" "--totals --leaks --clock=bytes" --strict --summary; do
      all="1 2"
      [ -n "$options" ] || all="1 2 5"
      for jobs in $all; do
        status=0
        # shellcheck disable=SC2086
        "$tool" --jobs=$jobs $options $trace >$jobs.out 2>$jobs.err || status=$?
        echo "status $status" >>$jobs.err
      done
      for jobs in ${all#1}; do
        cmp 1.out $jobs.out
        diff -u 1.err $jobs.err
      done
    done
  done
done
grep -q 'more than 1 MiB' 1.err

status=0; lifetimes --jobs=0 made.trace >out 2>err || status=$?
[ "$status" = 2 ]
grep -q -- '--jobs' err
