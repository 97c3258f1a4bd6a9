# Eight threads free each other's blocks: each free is paired with its own allocation, and no memory is two blocks' at once.
# bench/exchange runs this for hours, with more modes and allocators.
check() { "$BUILD/tests/preload/exchange_check" "$1" stated; }

for run in 1 2 3; do
  LD_PRELOAD=$TRACER CMTTRACE_OUT=$run.trace "$BUILD/tests/preload/exchange" stated seed=$run
  check $run.trace
done
/usr/bin/python3 "$SOURCE/tests/preload/trace.py" 1.trace

# With more memory live, each block in a place of its own.
LD_PRELOAD=$TRACER CMTTRACE_OUT=wide.cmt "$BUILD/tests/preload/exchange" stated wide
check wide.cmt

# While one thread works alone it holds the lease and needs no clock (preload/protocol.h), until another one records.
for run in 1 2 3; do
  rm -f status
  LD_PRELOAD=$TRACER CMTTRACE_STATUS=status CMTTRACE_OUT=turns.$run.cmt "$BUILD/tests/preload/exchange" stated turns seed=$run
  check turns.$run.cmt
  leases=$(sed -n 's/.* leases=\([0-9]*\) .*/\1/p' status)
  [ "$leases" -gt 1 ] || echo "skipped: no thread was alone: $leases times; does the kernel have membarrier?"
done

# The checker finds what is wrong: a trace of another run.
LD_PRELOAD=$TRACER CMTTRACE_OUT=other.cmt "$BUILD/tests/preload/exchange" stated seed=99
cp stated other.stated
"$BUILD/tests/preload/exchange" stated seed=98
status=0
check other.cmt >out 2>err || status=$?
[ "$status" = 1 ] && grep -q ' wrong=[1-9]' out && grep -q '^event [0-9]*: .*: ends allocation ' err
head -c 1000 other.stated >stated
check other.cmt 2>err || status=$?
[ "$status" = 2 ] && [ "$(cat err)" = 'exchange_check: stated: is cut off' ]
