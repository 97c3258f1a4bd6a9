# Each variable of the tracer takes effect, or one line says why it cannot, and the program goes on untraced.

failed=0
complain() { echo "$*" >&2; failed=1; }
# refused LINE VARIABLE=VALUE...: the tracer says so, whatever else is asked for, and leaves no file.
refused() {
  line=$1 status=0
  shift
  rm -rf t
  mkdir t
  env CMTTRACE_OUT=t/t.trace CMTTRACE_RINGS=t/rings CMTTRACE_CONTROL=t/fifo "$@" LD_PRELOAD=$TRACER \
    perl -e 'print "out"; exit 3' >out 2>err || status=$?
  [ $status = 3 ] && [ "$(cat out)" = out ] || complain "$*: the program did not go on: $status $(cat out)"
  [ "$(cat err)" = "libcmttrace: $line" ] || complain "$*: said: $(cat err)"
  [ -z "$(ls t)" ] || complain "$*: left $(ls t)"
}
for setting in ON_FULL=stop START=pause TIME=yes TIME=5 TIME=1us STAMPS=some USABLE=2 STACKS=2 STACK_FRAMES=4097 STACKS_OF_FREES=yes WAIT=maybe SAMPLE=often SAMPLE=-1ms MAX_TIME=1d 'MAX_TIME= 1s' \
  MAX_BYTES=1X MAX_BYTES=M MAX_BYTES=18014398509481984K MAX_EVENTS=1K MAX_EVENTS=18446744073709551616 SPILL=all \
  CHILD_OF=me OUT=a,b,c,d,e; do
  refused "CMTTRACE_${setting%=*} cannot be '${setting#*=}'; the program goes on untraced" "CMTTRACE_$setting"
done
for setting in STACK_FRAMES=0 MAX_TIME=0s MAX_BYTES=0K MAX_EVENTS=0 SAMPLE_BYTES=0 PPROF_FILES=0; do
  refused "CMTTRACE_${setting%=*} must be above 0; the program goes on untraced" "CMTTRACE_$setting"
done
refused "CMTTRACE_OUT cannot be '$(printf 'x%.0s' {1..64})...'; the program goes on untraced" "CMTTRACE_OUT=$(printf 'x%.0s' {1..4000})"
refused 'CMTTRACE_MAX_EVENT is not a variable that the tracer knows; the program goes on untraced' CMTTRACE_MAX_EVENT=7

# Files that cannot be created. Numbers are for files: a device or a folder is not gone round.
refused "cannot create $PWD/no/t.trace: No such file or directory" CMTTRACE_OUT=no/t.trace
refused '/dev/full: a trace is a regular file, and this is none; the program goes on untraced' CMTTRACE_OUT=/dev/full
refused "cannot create $PWD/t: Is a directory" CMTTRACE_OUT=t
refused "$PWD/out: commands come through a FIFO, and this is none; the program goes on untraced" CMTTRACE_CONTROL=out
refused "cannot create $PWD/no/fifo: No such file or directory" CMTTRACE_CONTROL=no/fifo
refused "cannot create $PWD/no/status: No such file or directory" CMTTRACE_STATUS=no/status
refused 'cannot create CMTTRACE_RINGS: No such file or directory; the program goes on untraced' CMTTRACE_RINGS=no/rings
refused 'cannot create CMTTRACE_RINGS: Is a directory; the program goes on untraced' CMTTRACE_RINGS=t
refused 'cannot start the collector: No such file or directory; the program goes on untraced' CMTTRACE_COLLECTOR=/nonexistent
refused 'cannot start the collector: Permission denied; the program goes on untraced' CMTTRACE_COLLECTOR="$PWD/out"
(ulimit -n 20 && refused 'cannot start the collector: Too many open files; the program goes on untraced' && exit $failed) || failed=1

(ulimit -f 40 && refused 'cannot make the rings: File too large; the program goes on untraced' CMTTRACE_RINGS= && exit $failed) || failed=1

# An empty value is none.
rm -f t.*
env CMTTRACE_{START,TIME,STAMPS,USABLE,SAMPLE,MAX_TIME,MAX_BYTES,MAX_EVENTS,SPILL,ON_FULL,RINGS,CONTROL,STATUS,CHILD_OF}= CMTTRACE_OUT=t.trace \
  LD_PRELOAD="$TRACER" "$BUILD/tests/preload/calls" all 2>err || complain "empty values: exit $?"
[ ! -s err ] && grep -q '^malloc(70001)' t.trace && ! grep -q ' time=' t.trace || complain "empty values: $(cat err)"

# Few descriptors, but the collector may have more.
rm -f t.*
(ulimit -Sn 8 && CMTTRACE_OUT=t.trace LD_PRELOAD=$TRACER "$BUILD/tests/preload/calls" all)
grep -q '^malloc(70001)' t.trace || complain "a soft limit on descriptors: $(ls)"

# Paths are those of the folder where the program began, and have its name and number.
rm -rf t
mkdir t
CMTTRACE_OUT=t/%n.%p.trace CMTTRACE_STATUS=t/%n.status LD_PRELOAD=$TRACER \
  perl -e 'chdir "/"; if (!fork) { my @x = map { "x" x $_ } 1..99; exit } wait' || complain "a changed folder: exit $?"
[ "$(ls t | grep -c '^perl\.[0-9]*\.trace$')" = 2 ] && [ "$(grep -c begun=1 t/perl.status)" = 2 ] && [ "$(wc -l <t/perl.status)" = 4 ] ||
  complain "a changed folder: $(ls t; cat t/perl.status)"

# A status file that others keep is not made, and not missed.
CMTTRACE_OUT=kept.trace CMTTRACE_STATUS=-t/none LD_PRELOAD=$TRACER perl -e 1 2>err || complain "a status file that is not there: exit $?"
: >t/kept
CMTTRACE_OUT=kept.trace CMTTRACE_STATUS=-t/kept LD_PRELOAD=$TRACER perl -e 1 2>>err || complain "a status file of others: exit $?"
[ ! -s err ] && [ -e kept.trace ] && [ ! -e t/none ] && [ "$(wc -l <t/kept)" = 2 ] && grep -q 'path=.*kept\.2\.trace$' t/kept ||
  complain "a status file of others: $(ls; cat err t/kept)"

# The number of a closed standard error is a file of the program's own, and no line for us.
(ulimit -f 1500 && CMTTRACE_OUT=big.trace LD_PRELOAD=$TRACER bash -c 'exec 2>precious; x=$(seq 100000); y=($x); exit 4' 2>&-) && status=0 || status=$?
[ $status = 4 ] && [ -e precious ] && [ ! -s precious ] || complain "no standard error: exit $status, $(cat precious)"
[ "$(tail -n 1 big.trace)" != '#cmt end=complete' ] || complain 'no limit was reached'
exit $failed
