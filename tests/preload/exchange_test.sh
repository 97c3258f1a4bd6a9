# Eight threads free each other's blocks: each free is paired with its own allocation, and no address lives twice.

for run in 1 2 3; do
  LD_PRELOAD=$TRACER CMTTRACE_OUT=$run.trace "$BUILD/tests/preload/exchange" stated
  /usr/bin/python3 "$SOURCE/tests/preload/exchange_check.py" $run.trace stated
done
