# Eight threads free each other's blocks: each free is paired with its own allocation, and no address lives twice.

for run in 1 2 3; do
  LD_PRELOAD=$TRACER CMTTRACE_OUT=$run.trace "$BUILD/tests/preload/exchange" stated
  /usr/bin/python3 "$SOURCE/tests/preload/exchange_check.py" $run.trace stated
done

# While one thread works alone it holds the lease and needs no clock (preload/protocol.h), until another one records.
for run in 1 2 3; do
  rm -f status
  LD_PRELOAD=$TRACER CMTTRACE_STATUS=status CMTTRACE_OUT=turns.$run.trace "$BUILD/tests/preload/exchange" stated turns
  /usr/bin/python3 "$SOURCE/tests/preload/exchange_check.py" turns.$run.trace stated
  leases=$(sed -n 's/.* leases=\([0-9]*\) .*/\1/p' status)
  [ "$leases" -gt 1 ] || echo "skipped: no thread was alone: $leases times; does the kernel have membarrier?"
done
