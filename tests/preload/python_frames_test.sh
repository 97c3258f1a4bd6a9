# The frames of Python in traces, against sys._getframe at each marked allocation, in the cases that python/scenes.py lists.
# PYTHON: the interpreter. REPEAT: how often a scene runs in its process.
. "$SOURCE/tests/waiting.sh"
python=${PYTHON:-/usr/bin/python3}
version=$("$python" -c 'import ctypes, sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) ||
  { echo "skipped: no Python with ctypes"; exit 77; }
case $version in
  3.9 | 3.1[0-5]) ;;
  *) echo "skipped: Python $version"; exit 77 ;;
esac

failed=0
# scene MOST_MISSING OPTION... NAME: compares the traces of all processes of the scene.
scene() {
  local missing=$1 name=${!#} log process
  shift
  mkdir "$name" && cd "$name" || exit 1
  timeout 240 env CMTTRACE_STACKS=1 CMTTRACE_TOUCHED=off CMTTRACE_WAIT=1 CMTTRACE_OUT=%p.cmt LD_PRELOAD="$TRACER" \
    "$python" "$SOURCE/tests/preload/python/scenes.py" log "$@" >out 2>&1 || { echo "$version $name: exit $?: $(tail -5 out)" >&2; failed=1; }
  for log in log.*; do
    process=${log#log.}
    "$BUILD/trace2cmt/trace2cmt" --text -o "$process.trace" "$process.cmt" &&
      /usr/bin/python3 "$SOURCE/tests/preload/python/check.py" --version="$version" --may-miss="$missing" "$process.trace" "$log" >checked 2>&1 ||
      { echo "$version $name: $(cat checked)" >&2; failed=1; }
  done
  cd ..
}
for name in churn generators coroutines callbacks mixed compresses exceptions signals traced forks threads interpreters exits; do
  scene 0 $name
done
scene 0 --repeat="${REPEAT:-20}" --seed=7 made
scene 2 recursion  # in the limit, ctypes may refuse the call
scene 3 daemons    # one for each thread

# Many lines, of which each has its name.
for line in $(seq 20000); do echo 'kept = bytearray(600)'; done >many.py
"$BUILD/cmttrace/cmttrace" --follow=no -o many.cmt -- "$python" many.py 2>said
grep -q ' lines of Python named' said || { echo "$version many lines: $(cat said)" >&2; failed=1; }
! grep -q 'not named' said || { echo "$version many lines: $(cat said)" >&2; failed=1; }

# A sub-interpreter that the main thread has made and another one runs. Up to 3.11 its frames are not found, and counted.
cat >elsewhere.py <<'END'
import threading
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
interpreter = interpreters.create()
text = "def hold(count):\n    return [bytearray(3000) for _ in range(count)]\nkept = hold(300)"
run = getattr(interpreters, "run_string", None) or interpreters.exec
thread = threading.Thread(target=run, args=(interpreter, text))
thread.start()
thread.join()
END
"$BUILD/cmttrace/cmttrace" --stacks -o elsewhere.cmt -- "$python" elsewhere.py 2>said || { cat said >&2; failed=1; }
"$BUILD/lifetimes/lifetimes" --by=function --top=999 --json elsewhere.cmt 2>/dev/null |
  jq -c '[.contributors[] | select(.name | test("^hold")) | .self.allocated_blocks] | add // 0' >elsewhere
case $version in
  3.9 | 3.10 | 3.11) grep -q 'the lines of Python in [0-9,]* call stacks not known' said ;;
  *) [ "$(cat elsewhere)" -ge 300 ] ;;
esac || { echo "$version a sub-interpreter of another thread: $(cat elsewhere said)" >&2; failed=1; }

# Another interpreter in the process is reported once.
cat >second.py <<'END'
import ctypes, sys
for _ in range(3):
    ctypes.CDLL(sys.argv[1])._PyEval_EvalFrameDefault()
END
"$BUILD/cmttrace/cmttrace" --stacks -o second.cmt -- "$python" second.py "$BUILD/tests/preload/libsecond_python.so" 2>said
[ "$(grep -c 'the process has another Python, whose stacks have native frames only' said)" = 1 ] ||
  { echo "$version another interpreter: $(cat said)" >&2; failed=1; }

rm -f out
# The same after an attach, where the line comes at the end of the recording.
mkfifo go
rm -f said
"$python" -c 'import ctypes, sys; print("begun", flush=True); sys.stdin.readline(); ctypes.CDLL(sys.argv[1])._PyEval_EvalFrameDefault()' "$BUILD/tests/preload/libsecond_python.so" <go >out &
program=$!
exec 3>go
until_true 'grep -q begun out'  # before, it may not have a libc yet
"$BUILD/cmttrace/cmttrace" --stacks -o later.cmt --attach=$program 2>said &
recorder=$!
until_true 'grep -q "records process" said || ! kill -0 $recorder' 2>/dev/null
echo >&3
exec 3>&-
wait $program $recorder
[ "$(grep -c 'the process has another Python, whose stacks have native frames only' said)" = 1 ] ||
  grep -q 'not permitted' said || { echo "$version another interpreter after an attach: $(cat said)" >&2; failed=1; }

# An attach during a deep recursion: its stacks have no lines of Python, and are counted. The later ones have their lines.
cat >deep.py <<'END'
import sys
import threading


def hold(count):
    return [bytearray(3000) for _ in range(count)]


def down(depth):
    if depth:
        return down(depth - 1)
    print("begun", flush=True)
    sys.stdin.readline()
    return hold(200)


def main():
    kept = down(int(sys.argv[1]))
    kept += hold(300)
    print("held", len(kept), flush=True)
    sys.stdin.readline()


sys.setrecursionlimit(100000)
threading.stack_size(256 << 20)
threading.Thread(target=main).start()
END
for depth in 5000 20000; do
  rm -f out said
  "$python" deep.py $depth <go >out 2>&1 &
  program=$!
  exec 3>go
  until_true 'grep -q begun out'
  "$BUILD/cmttrace/cmttrace" --stacks -o deep.cmt --attach=$program 2>said &
  recorder=$!
  until_true 'grep -q "records process" said || ! kill -0 $recorder' 2>/dev/null
  echo >&3
  until_true 'grep -q held out || ! kill -0 $program' 2>/dev/null
  kill -INT $recorder 2>/dev/null
  wait $recorder
  echo >&3
  exec 3>&-
  wait $program || { echo "$version $depth frames: exit $?: $(cat out)" >&2; failed=1; }
  grep -q 'not permitted' said && break
  grep -q 'the lines of Python in [0-9]* call stacks not known' said ||
    { echo "$version $depth frames: $(cat said)" >&2; failed=1; }
  "$BUILD/lifetimes/lifetimes" --by=function --sort=live --top=99 --json deep.cmt 2>/dev/null |
    jq -e '[.contributors[] | select(.name | test("^hold")) | .self.end_live_blocks] | add | . >= 300 and . <= 310' >/dev/null ||
    { echo "$version $depth frames: not 300 blocks of hold()" >&2; failed=1; }
done

# A Python before 3.7, by what it defines, is a version that is not known.
cat >old.c <<'END'
#include <stdlib.h>
const char* Py_GetVersion(void) { return "2.7.18"; }
int PyEval_EvalFrameEx(void* frame, int thrown) { return (frame = malloc(100)) != NULL && thrown; }
int main(void) { return PyEval_EvalFrameEx(NULL, 0); }
END
gcc -O0 -rdynamic -o old old.c
CMTTRACE_STACKS=1 CMTTRACE_OUT=old.cmt LD_PRELOAD=$TRACER ./old >out 2>&1 || { echo "an old Python: exit $?" >&2; failed=1; }
grep -q 'this version of Python is not known' out || { echo "an old Python: $(cat out)" >&2; failed=1; }

# Each offset of the table that the version uses but `finalizing`, when it is wrong, ends in one line, and the program goes on.
case $version in
  3.8 | 3.9) offsets="" ;;
  3.10) offsets="thread_cframe cframe_previous instruction" ;;
  3.11) offsets="previous code instruction thread_cframe cframe_previous cframe_frame owner is_entry" ;;
  3.12) offsets="previous code instruction cframe_frame owner" ;;
  *) offsets="previous code instruction owner" ;;
esac
shifted=${TRACER%/*}/shifted/libcmttrace.so
[ -e "$shifted" ] || exit $failed  # the build with sanitizers copies the tracer alone
for offset in thread_id thread_frame $offsets; do
  for shift in 8 -8; do
    timeout 60 env PYTHON_SHIFT=$offset:$shift CMTTRACE_STACKS=1 CMTTRACE_TOUCHED=off CMTTRACE_OUT=shifted.cmt LD_PRELOAD="$shifted" \
      CMTTRACE_COLLECTOR="${TRACER%/*}/cmttrace-collector" \
      "$python" -c 'import json; json.dumps(list(range(1000)), indent=1)' >out 2>&1 || { echo "$version $offset $shift: exit $?" >&2; failed=1; }
    [ "$(grep -c 'native frames only' out)" = 1 ] || { echo "$version $offset $shift: $(cat out)" >&2; failed=1; }
  done
done
exit $failed
