# Checks that the output of lifetimes and overhead does not depend on --jobs, for sound traces and for bad ones.

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
cp "$SOURCE/tests/analysis/golden/bad.trace" bad.trace
head -c "$(($(stat -c %s made.cmt) - 9))" made.cmt >cut.cmt
{ head -n 4000 made.trace; head -c 2000000 /dev/zero | tr '\0' x; } >long.trace  # its last line is no line

# same TOOL TRACE JOBS OPTION...: the output with one thread, and with so many.
same() {
  local tool=$1 trace=$2 more=$3 jobs status; shift 3
  for jobs in 1 $more; do
    status=0
    "$tool" "--jobs=$jobs" "$@" "$trace" >"$jobs.out" 2>"$jobs.err" || status=$?
    echo "status $status" >>"$jobs.err"
  done
  for jobs in $more; do
    cmp 1.out "$jobs.out"
    diff -u 1.err "$jobs.err"
  done
}

for tool in lifetimes overhead; do
  for trace in made.trace made.cmt bad.trace cut.cmt long.trace; do
    same $tool $trace "2 5"
    for options in "--totals --leaks --clock=bytes" --strict --summary --by=thread; do
      # shellcheck disable=SC2086
      same $tool $trace 2 $options
    done
  done
done
grep -q 'more than 1 MiB' 1.err

# Any number of threads reads a damaged .cmt up to the same place and reports the same error.
for trace in "$SOURCE"/format-spec/vectors/bad_*.cmt; do same lifetimes "$trace" 2 --by=size; done
for trace in "$SOURCE"/format-spec/vectors/bad_address*.cmt; do same overhead "$trace" 2 --summary; done

# By call stacks, which are read with the events, and as pictures.
awk 'BEGIN {
  print "#module 1 begin=1000 end=9000 bias=1000 path=/opt/app"
  for (i = 1; i <= 9; ++i) {
    printf "#frame %d module=1 address=10%d0\n#name %d function=f%d file=app.cpp line=%d\n", i, i, i, i, i
    printf "#node %d parent=%d frame=%d\n", i, int(i / 2), i
  }
  for (i = 1; i <= 9000; ++i) {
    printf "malloc(%d) = %x<%d> stack=%d thread=%d\n", i % 700 + 1, 4096 + i * 1024, i, i % 10, i % 3
    if (i > 900 && i % 2 == 0) printf "free(%x<%d>)\n", 4096 + (i - 801) * 1024, i - 801
  }
}' >stacks.trace
trace2cmt -o stacks.cmt stacks.trace
for trace in stacks.trace stacks.cmt "$SOURCE"/format-spec/vectors/*stack*.cmt; do
  for options in --by=function --folded=live; do same lifetimes "$trace" 2 $options; done
done
for tool in lifetimes overhead; do
  for jobs in 1 2; do "$tool" --jobs=$jobs --plot=$jobs.svg stacks.cmt; done
  cmp 1.svg 2.svg
done

status=0; lifetimes --jobs=0 made.trace >out 2>err || status=$?
[ "$status" = 2 ]
grep -q -- '--jobs' err
