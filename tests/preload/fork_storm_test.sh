# A program whose threads allocate all the time forks, and the children start threads: nothing hangs, every trace is whole.

mkdir t
cd t
timeout 240 env LD_PRELOAD="$TRACER" "$BUILD/tests/preload/fork_storm" 100
[ "$(ls | wc -l)" = 101 ]
ls -S | tail -n +2 | xargs /usr/bin/python3 "$SOURCE/tests/preload/checks/trace.py" >/dev/null
