# Checks traces of eight threads that free each other's blocks. Each free is paired with its own allocation, and no two
# live blocks share memory. Both hold if threads read the clock for each event, and if only where memory changes hands.
# The script bench/exchange runs this for hours, with more modes and allocators. Further seeds run every day.
check() { "$BUILD/tests/preload/exchange_check" "$1" stated; }

for stamps in all sparse; do
  export CMTTRACE_STAMPS=$stamps
  for run in 1 ${CMT_DAILY:+2 3}; do
    LD_PRELOAD=$TRACER CMTTRACE_OUT=$stamps.$run.trace "$BUILD/tests/preload/exchange" stated seed=$run
    check $stamps.$run.trace
  done

  # With more memory live, each block in a place of its own.
  if [ -n "${CMT_DAILY:-}" ]; then
    LD_PRELOAD=$TRACER CMTTRACE_OUT=wide.$stamps.cmt "$BUILD/tests/preload/exchange" stated wide
    check wide.$stamps.cmt
  fi

  # With small blocks, which are split and merged.
  for mode in ${CMT_DAILY:+small} 'small wide'; do
    LD_PRELOAD=$TRACER CMTTRACE_OUT=small.$stamps.cmt "$BUILD/tests/preload/exchange" stated $mode
    check small.$stamps.cmt
    rm small.$stamps.cmt
  done

  # The same where now and then one thread works alone.
  for run in 1 ${CMT_DAILY:+2}; do
    LD_PRELOAD=$TRACER CMTTRACE_OUT=turns.$stamps.$run.cmt "$BUILD/tests/preload/exchange" stated turns seed=$run
    check turns.$stamps.$run.cmt
  done
done
/usr/bin/python3 "$SOURCE/tests/preload/checks/trace.py" sparse.1.trace

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
