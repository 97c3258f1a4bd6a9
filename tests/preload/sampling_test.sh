# cmttrace --sample-bytes: which blocks are samples, that each end of a sample is seen, and what the trace states.
. "$SOURCE/tests/behaviours.sh"

sampled() {  # RATE PROGRAM WORD...
  rm -f t*.cmt
  CMTTRACE_SAMPLE_BYTES=$1 CMTTRACE_OUT=t.cmt LD_PRELOAD=$TRACER "$BUILD/tests/preload/${@:2}"
}
check() { /usr/bin/python3 "$SOURCE/tests/preload/checks/sampled.py" "$@" >figures; }
export PYTHONPATH=$SOURCE/python PYTHONDONTWRITEBYTECODE=1
text() { /usr/bin/python3 -m cmt_trace t.cmt >t.text; }

estimates() {
  sampled 64K sampled sizes
  check t.cmt 100=10000,2500 1000=10000,2500 10000=10000,2500 100000=10000,2500
  text
  [ "$(grep -c '^thread_start() thread=1' t.text)" = 1 ]
  grep -qx '#cmt sampled=65536' t.text
}
behaviour "estimates of blocks made and live are those of the program, from two threads" estimates

# More live samples than the table may have.
crowd() {
  sampled 16 sampled crowd
  check t.cmt 64=40000,20000 640=40000,20000
  text
  [ "$(grep -c '^sampling_interval(' t.text)" -ge 1 ]
  [ "$(grep -c '^unsample(' t.text)" -ge 1000 ]
}
behaviour "the interval rises when the table is three quarters full, and the estimates stay true" crowd

forks() {
  sampled 4K sampled fork
  traces=(t*.cmt)
  [ ${#traces[@]} = 2 ]
  for trace in "${traces[@]}"; do
    if /usr/bin/python3 -m cmt_trace "$trace" | grep '^#cmt origin=fork' >line; then
      check "$trace" 1000=0,0 2000=1000,1000
    else
      check "$trace" 1000=2000,0 3000=1000,1000
    fi
  done
}
behaviour "a forked child has samples of its own, and its parent's are no samples there" forks

growing() {
  sampled 4K sampled growing
  check t.cmt 5000=1000,0 50000=1000,0
  text
  grep -qE '^realloc\([0-9a-f]+<[0-9]+>, 0\) = 0' t.text
  grep -qE '^realloc\([0-9a-f]+<[0-9]+>, [0-9]{10,}\) = 0' t.text
}
behaviour "realloc ends and makes samples, and a refused one does neither" growing

pausing() {
  sampled 1K sampled pausing
  check t.cmt 3000=2000,1000 4000=0,0 5000=1000,1000
}
behaviour "samples that are freed in a pause end when it ends" pausing

# The first call of all starts the tracer, and is no more of a sample than others: here that of the C++ library.
first_call() {
  with=0
  for run in 1 2 3; do
    sampled 1G operators all
    text
    ! grep -q ' = [0-9a-f]*<' t.text || with=$((with + 1))
  done
  [ $with != 3 ] || complain "always a sample: $(grep ' = ' t.text)"
}
behaviour "the call that starts the tracer is not a sample by itself" first_call

# With an interval of a byte each block but the smallest is a sample.
every_function() {
  sampled 1 calls all
  text
  b='[0-9a-f]+<[0-9]+>'
  for line in 'malloc\(70001\)' 'calloc\(3, 70002\)' 'realloc\(0, 70003\)' "realloc\\($b, 70004\\)" 'realloc\(0, 140010\)' \
    "realloc\\($b, 140012\\)" 'aligned_alloc\(64, 70016\)' 'posix_memalign\(128, 70007\)' 'memalign\(256, 70008\)' \
    'valloc\(70009\)' 'pvalloc\(70010\)'; do
    grep -qE "^$line = $b" t.text || complain "no line $line"
  done
  [ "$(grep -cE "^realloc\\($b, 0\\) = 0" t.text)" -ge 1 ]
  sampled 1 calls refused
  sampled 1 calls errno
  sampled 1 calls signals
  text
  [ "$(grep -c '^malloc(24)' t.text)" = 2000 ] || complain "events of a signal handler are missing"
}
behaviour "all functions, refused calls, errno and signal handlers are as without the sampler" every_function

operators() {
  sampled 1 operators all
  text
  [ "$(grep -c '^#cmt repairs' t.text)" = 0 ]
  live=$(grep -cE ' = [0-9a-f]+<' t.text) ended=$(grep -cE '^(free|operator delete)[^(]*\([0-9a-f]+<' t.text)
  [ $((live - ended)) -le 5 ] || complain "$live blocks of operators, $ended ended"
}
behaviour "operators new and delete are counted once" operators

exchange() {
  rm -f t.cmt
  CMTTRACE_SAMPLE_BYTES=1 CMTTRACE_OUT=t.cmt LD_PRELOAD=$TRACER "$BUILD/tests/preload/exchange" stated seed=3
  "$BUILD/tests/preload/exchange_check" t.cmt stated
}
behaviour "eight threads that free each other's blocks: each end is paired with its allocation" exchange

attached() {
  perl -e '
    $SIG{TERM} = sub { exit 0 };
    open my $ready, ">", "ready"; close $ready;
    while (1) { my @blocks = map { "x" x (1000 + $_) } 1 .. 1000; select undef, undef, undef, 0.002 }' &
  pid=$!
  until [ -e ready ]; do sleep 0.01; done
  for run in 1 2; do
    "$BUILD/cmttrace/cmttrace" --attach=$pid --sample-bytes=16K --duration=1s -o attached.$run.cmt 2>err ||
      { grep -q 'not permitted' err && { kill $pid; echo "skipped: $(cat err)"; return; }; cat err >&2; return 1; }
    check attached.$run.cmt
    [ "$(awk '/^samples/ { print $2 }' figures)" -ge 20 ] || complain "$(cat figures)"
  done
  status=0
  "$BUILD/cmttrace/cmttrace" --attach=$pid --sample-bytes=4K --duration=1s -o other.cmt 2>err || status=$?
  [ $status = 125 ] && grep -q 'sampled before with another interval' err || complain "$status: $(cat err)"
  kill $pid
  wait $pid
}
behaviour "a process that runs is sampled, let go, and sampled again with the same interval only" attached

wrong_use() {
  status=0
  "$BUILD/cmttrace/cmttrace" --sample-bytes=64K -o t.trace -- true 2>err || status=$?
  [ $status = 2 ] && grep -q 'has to end in .cmt' err
  status=0
  "$BUILD/cmttrace/cmttrace" --sample-bytes=2G -- true 2>err || status=$?
  [ $status = 2 ] && grep -q -- "--sample-bytes: expected a size" err
  CMTTRACE_SAMPLE_BYTES=64K CMTTRACE_OUT=t.trace LD_PRELOAD=$TRACER /bin/true 2>err
  grep -q 'needs the paths of CMTTRACE_OUT to end in .cmt; the program goes on untraced' err
}
behaviour "wrong use is reported in one line" wrong_use

probes() {
  readelf -n "$TRACER" >notes
  [ "$(grep -c 'Provider: otel_memory' notes)" = 2 ]
  grep -q 'Arguments: 8@%rdi 8@%rsi 8@%rdx' notes
  status=0
  rm t.cmt
  CMTTRACE_SAMPLE_BYTES=64K CMTTRACE_OUT=t.cmt "$BUILD/tests/preload/probe_watch" "$TRACER" \
    "$BUILD/tests/preload/sampled" growing >seen 2>err || status=$?
  [ $status != 77 ] || { echo "skipped: the kernel allows no uprobes here: $(cat err)"; return; }
  [ $status = 0 ]
  # The same blocks as the trace has, and an estimate of the bytes that the program asked for.
  text
  made=$(grep -cE ' = [0-9a-f]+<' t.text)
  read -r _ allocs _ weighted _ frees <seen
  [ "$allocs" = "$made" ] || complain "$allocs allocations seen, $made recorded"
  [ "$frees" -ge $((allocs - 10)) ] && [ "$frees" -le "$allocs" ] || complain "$frees frees seen"
  [ "$weighted" -gt 45000000 ] && [ "$weighted" -lt 65000000 ] || complain "$weighted bytes"
}
behaviour "a profiler sees each sample at the probes of OpenTelemetry" probes
exit $failed
