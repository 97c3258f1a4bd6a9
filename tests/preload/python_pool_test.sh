# The blocks of pymalloc in traces: as many live ones as a line has made, and the same sums of malloc with and without them.
# Recorded from the start, and after an attach.
. "$SOURCE/tests/waiting.sh"
python=/usr/bin/python3
"$python" -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 9), (3, 10), (3, 11), (3, 12), (3, 13), (3, 14)))' 2>/dev/null ||
  { echo "skipped: no Python from 3.9 to 3.14"; exit 77; }
cat >program.py <<'END'
import os
import sys
import tracemalloc


def hold(count):
    kept = []
    for _ in range(count):
        kept.append(object())
    return kept


def main():
    if "tracemalloc" in sys.argv:
        tracemalloc.start()
    print("begun", flush=True)
    sys.stdin.readline()
    kept = hold(2000)
    tracemalloc.stop()
    kept += hold(2000)
    tracemalloc.start()
    kept += hold(1000)
    print("held", flush=True)
    sys.stdin.readline()
    if "again" in sys.argv:
        kept += [bytearray(3000) for _ in range(200)]
        print("again", flush=True)
        sys.stdin.readline()
        del kept[5000:]
    os._exit(len(kept) != 5000)


main()
END
complain() { echo "$*" >&2; exit 1; }
# held TRACE: checks what the line of hold() has at the end.
held() {
  lifetimes --pool=python --by=line --sort=live --top=1000 --json "$1" 2>/dev/null |
    jq -e '[.contributors[] | select(.name | test("^hold .*program.py:9")) | .self.end_live_blocks] == [5000]' >/dev/null ||
    complain "$1: not 5,000 blocks of hold()"
}

printf '\n\n' | CMTTRACE_WAIT=1 cmttrace --pool=python -o with.cmt -- "$python" program.py >out 2>messages || complain "$(cat messages)"
printf '\n\n' | CMTTRACE_WAIT=1 cmttrace -o without.cmt -- "$python" program.py >out 2>messages || complain "$(cat messages)"
held with.cmt
# A wrapper, debug hooks, and both. They put headers before each block, and pass large blocks to malloc.
for options in "-X tracemalloc" "-X dev" "-X dev -X tracemalloc"; do
  printf '\n\n' | CMTTRACE_WAIT=1 cmttrace --pool=python -o wrapped.cmt -- "$python" $options program.py >out 2>messages ||
    complain "$options: $(cat messages)"
  held wrapped.cmt
  grep -q 'nothing was lost' messages || complain "$options: $(cat messages)"
done
printf '\n\n' | PYTHONMALLOC=malloc_debug CMTTRACE_WAIT=1 cmttrace --pool=python -o malloc.cmt -- "$python" program.py >out 2>messages ||
  complain "malloc_debug: $(cat messages)"
lifetimes --by=line --sort=live --top=1000 --json malloc.cmt 2>/dev/null |
  jq -e '[.contributors[] | select(.name | test("^hold .*program.py:9")) | .self.end_live_blocks] | .[0] >= 5000' >/dev/null ||
  complain "malloc_debug: not 5,000 blocks of malloc"
trace2cmt --text -o malloc.trace malloc.cmt
! grep '^pool_malloc.*"python")' malloc.trace | awk 'NR > 9' | grep . >&2 || complain "malloc_debug: blocks are counted twice"
# Blocks of mimalloc are of any size, and malloc has none of them.
if PYTHONMALLOC=mimalloc "$python" -c pass 2>/dev/null; then
  printf '\n\n' | PYTHONMALLOC=mimalloc CMTTRACE_WAIT=1 cmttrace --pool=python -o mimalloc.cmt -- "$python" program.py >out 2>messages ||
    complain "mimalloc: $(cat messages)"
  held mimalloc.cmt
  trace2cmt --to=text mimalloc.cmt | awk -F '[(,]' '/^pool_malloc/ && $2 > 512 { ++large } END { exit !large }' ||
    complain "mimalloc: no large blocks"
fi
for trace in with without; do
  lifetimes --by=function --json $trace.cmt 2>/dev/null | jq -e '.total | .allocated_blocks, .allocated_bytes, .peak_bytes' >$trace.json ||
    complain "$trace.cmt: no sums"
done
cmp with.json without.json || complain "the pool has changed the sums of malloc"
# Blocks of malloc that the pool asks for are not charged to the tracer's functions in the pool's place.
#
# not_charged TRACE
not_charged() {
  for key in function library line; do
    lifetimes --by=$key --json "$1" 2>messages | jq -e '[.contributors[] | .name + (.library // "")] |
      length > 0 and (any(test("cmttrace|^pool_|python_pool.c|/proc/|^[0-9]+[+]")) | not)' >/dev/null ||
      complain "$1 by $key: $(lifetimes --by=$key "$1" 2>&1)"
    ! grep -E 'cmttrace|/proc/' messages >&2 || complain "$1: names of the tracer's functions"
  done
}
not_charged with.cmt
trace2cmt --text -o without.trace without.cmt
grep -q '^pool_' without.trace && complain "a pool was recorded without being asked for"

# A realloc moves a block to a pool that has room, and the arena that it leaves ends inside the call. So 8,000 blocks of
# 401 bytes become blocks of 101. There are 320 of these already, and a few of the interpreter.
cat >moves.py <<'END'
import array, ctypes, os
make, move, end = (getattr(ctypes.pythonapi, "PyObject_" + name) for name in ("Malloc", "Realloc", "Free"))
make.restype = move.restype = ctypes.c_size_t
make.argtypes, move.argtypes, end.argtypes = [ctypes.c_size_t], [ctypes.c_size_t] * 2, [ctypes.c_size_t]
small, large = (array.array("Q", [0]) * count for count in (16000, 8000))
for i in range(len(small)):
    small[i] = make(101)
for i in range(len(large)):
    large[i] = make(401)
for i in range(len(small)):
    if i % 50:
        end(small[i])
for i in range(len(large)):
    large[i] = move(large[i], 101)
os._exit(0)
END
for stacks in "" "--stacks --stacks-of-frees"; do
  cmttrace $stacks --pool=python -o moves.cmt -- "$python" moves.py >out 2>messages || complain "$(cat messages)"
  trace2cmt --strict --to=text moves.cmt | awk -F '[(<>,)]' '
    /^pool_malloc.*"python"/ { size[$5] = $2; ++live[$2] }
    /^pool_malloc.*"python arenas"/ { arena[$5] = $2; held += $2 }
    /^pool_free.*"python"/ { if (!($3 in size)) ++unknown; --live[size[$3]] }
    /^pool_free.*"python arenas"/ { if (!($3 in arena)) ++unknown; held -= arena[$3]; ++ended }
    END { for (each in live) bytes += each * live[each]
      print live[101], live[401], ended, bytes, held, unknown
      exit live[101] < 8320 || live[101] > 8370 || live[401] > 5 || ended < 1 || bytes > held || unknown }' >sums ||
    complain "blocks that move, $stacks: $(cat sums)"
done

# Since 3.11 the interpreter has memory for its frames by the functions of arenas. In a deep recursion that is much more.
cat >deep.py <<'END'
import os
import sys

sys.setrecursionlimit(10**6)


def descend(depth):
    if depth:
        return descend(depth - 1)
    sys._debugmallocstats()
    os._exit(0)


descend(50000 if sys.version_info >= (3, 11) else 100)
END
# With other allocators in its tables, the interpreter does not print this.
"$python" deep.py 2>&1 | sed -n 's/^[0-9]* arenas \* .*= *//p' | tr -d , >arenas
cmttrace --pool=python -o deep.cmt -- "$python" deep.py >out 2>messages || complain "$(cat messages)"
trace2cmt --to=text deep.cmt | awk -F '[(<>,)]' -v plain="$(cat arenas)" '
  /^pool_malloc.*"python arenas"/ { arena[$5] = $2; held += $2 }
  /^pool_free.*"python arenas"/ { held -= arena[$3] }
  END { print held; exit !plain || held < plain - 1048576 || held > plain + 1048576 }' >sums ||
  complain "arenas: $(cat sums) bytes, not $(cat arenas)"

# The interpreter frees blocks of malloc by the same functions. They may be next to an arena.
sed '/^small, large/,$d' moves.py >mapped.py
cat >>mapped.py <<'END'
large = []
for i in range(40):
    for k in range(500):
        make(500)
    large.append(make(200000))
for i in range(40):
    end(move(large[i], 300000) if i % 2 else large[i])
os._exit(0)
END
cmttrace --pool=python -o mapped.cmt -- "$python" mapped.py >out 2>messages || complain "$(cat messages)"
! grep 'unknown blocks' messages >&2 || complain "blocks of malloc are not those of the pool"

# A trace that breaks off early has no pools in the part that can be read. The lines do not ask for a recording with them.
head -c $(($(stat -c %s moves.cmt) / 50)) moves.cmt >early.cmt
! lifetimes --pool=python --by=line early.cmt >out 2>messages || complain "an early break is no error"
grep -q 'no events of pool python; the part before the break has no pools' messages || complain "an early break: $(cat messages)"

# The sums of a program that is killed: at most one of hold's blocks is not counted, or not noted.
cat >killed.py <<'END'
import os
kept = []


def hold():
    kept.append(object())


noted = os.open("noted", os.O_CREAT | os.O_WRONLY)
for i in range(1 << 30):
    hold()
    os.pwrite(noted, b"%9d" % (i + 1), 0)
END
for seconds in 0.2 0.5; do
  rm -f noted
  cmttrace --pool=python --follow=no -o killed.cmt -- sh -c 'echo $$ >pid; exec "$1" killed.py' sh "$python" >out 2>messages &
  recorder=$!
  until_true "[ -s noted ] || ! kill -0 $recorder"
  sleep $seconds
  kill -KILL "$(cat pid)"
  wait $recorder 2>/dev/null || true
  lifetimes --pool=python --by=line --sort=live --top=1000 --json killed.cmt 2>/dev/null |
    jq -e --argjson noted "$(tr -d ' ' <noted)" '[.contributors[] | select(.name | test("^hold .*killed.py:6")) | .self.end_live_blocks] |
      .[0] == $noted or .[0] == $noted + 1' >/dev/null || complain "killed: not the $(cat noted) blocks of hold()"
done

mkfifo commands
# record TRACE: begins an attach.
record() {
  rm -f messages
  cmttrace --attach=$program --pool=python -o "$1" 2>messages &
  recorder=$!
  until grep -qs 'records process' messages; do
    kill -0 $recorder 2>/dev/null || { cat messages; echo "skipped: the process cannot be attached to"; exit 77; }
    sleep 0.05
  done
}
# attached ARGUMENT...: the program begins with these arguments, and holds its blocks during the recording.
attached() {
  local program recorder
  rm -f out
  "$python" program.py "$@" <commands >out &
  program=$!
  exec 5>commands
  until_true 'grep -q begun out || ! kill -0 $program'
  record attached.cmt
  echo >&5
  until_true 'grep -q held out || ! kill -0 $program'
  kill -INT $recorder
  wait $recorder || complain "$* $(cat messages)"
  held attached.cmt
  # Its blocks may be in arenas from before.
  lifetimes --summary attached.cmt 2>&1 | grep -q 'arenas have' && complain "arenas that are not all known: $(lifetimes --summary attached.cmt 2>&1)"
  if [ "${!#}" = again ]; then
    record again.cmt
    echo >&5
    until_true 'grep -q again out || ! kill -0 $program'
    kill -INT $recorder
    wait $recorder || complain "$* $(cat messages)"
    ! grep 'another Python' messages >&2 || complain "a second attach takes the interpreter for another one"
    grep -q 'pools: [0-9,]* blocks allocated' messages || complain "a second attach records no pool: $(cat messages)"
    not_charged again.cmt
  fi
  echo >&5
  wait $program || complain "$* the program failed after the recording"
}
attached again
attached tracemalloc  # it is active at the attach, and stops while recorded
