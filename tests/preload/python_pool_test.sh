# The blocks of pymalloc in traces: as many live ones as a line has made, and the same sums of malloc with and without them.
# Recorded from the start, and after an attach.
python=/usr/bin/python3
"$python" -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 9), (3, 10), (3, 11), (3, 12), (3, 13), (3, 14)))' 2>/dev/null ||
  { echo "skipped: no Python from 3.9 to 3.14"; exit 77; }
cat >program.py <<'END'
import os
import sys


def hold(count):
    kept = []
    for _ in range(count):
        kept.append(object())
    return kept


def main():
    print("begun", flush=True)
    sys.stdin.readline()
    kept = hold(5000)
    print("held", flush=True)
    sys.stdin.readline()
    os._exit(len(kept) != 5000)


main()
END
complain() { echo "$*" >&2; exit 1; }
# held TRACE: checks what the line of hold() has at the end.
held() {
  lifetimes --pool=python --by=line --sort=live --top=1000 --json "$1" 2>/dev/null |
    jq -e '[.contributors[] | select(.name | test("^hold .*program.py:8")) | .self.end_live_blocks] == [5000]' >/dev/null ||
    complain "$1: not 5,000 blocks of hold()"
}

printf '\n\n' | CMTTRACE_WAIT=1 cmttrace --pool=python -o with.cmt -- "$python" program.py >out 2>messages || complain "$(cat messages)"
printf '\n\n' | CMTTRACE_WAIT=1 cmttrace -o without.cmt -- "$python" program.py >out 2>messages || complain "$(cat messages)"
held with.cmt
printf '\n\n' | CMTTRACE_WAIT=1 cmttrace --pool=python -o wrapped.cmt -- "$python" -X tracemalloc program.py >out 2>messages ||
  complain "with tracemalloc: $(cat messages)"
held wrapped.cmt
for trace in with without; do
  lifetimes --by=function --json $trace.cmt 2>/dev/null | jq -e '.total | .allocated_blocks, .allocated_bytes, .peak_bytes' >$trace.json ||
    complain "$trace.cmt: no sums"
done
cmp with.json without.json || complain "the pool has changed the sums of malloc"
trace2cmt --text -o without.trace without.cmt
grep -q '^pool_' without.trace && complain "a pool was recorded without being asked for"

mkfifo commands
"$python" program.py <commands >out &
program=$!
exec 5>commands
until grep -q begun out; do sleep 0.05; done
cmttrace --attach=$program --pool=python -o attached.cmt 2>messages &
recorder=$!
until grep -q 'records process' messages; do
  kill -0 $recorder 2>/dev/null || { cat messages; echo "skipped: the process cannot be attached to"; exit 77; }
  sleep 0.05
done
echo >&5
until grep -q held out; do sleep 0.05; done
kill -INT $recorder
wait $recorder || complain "$(cat messages)"
held attached.cmt
echo >&5
wait $program || complain "the program failed after the recording"
