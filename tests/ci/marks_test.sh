# The marks of Google Benchmark and pytest: one gate of the same program, and one of a planted allocation.
one() {  # one KIND
  "$SOURCE/bench/ci_gate" --build="$BUILD" --runs=1 --only="$1" >counts
  grep -x "$1: 1 gates of the same program: 0 alarms; 1 of one more allocation: 1 found" counts || { cat counts; exit 1; }
}
done=0
if [ -e /usr/include/benchmark/benchmark.h ]; then one benchmark; done=1; fi
if /usr/bin/python3 -c 'import pytest' 2>/dev/null; then one pytest; done=1; fi
[ $done = 1 ] || { echo "skipped: neither Google Benchmark nor pytest is here"; exit 77; }
