# Output, standard error and exit status of a traced program are those of the program.

failed=0
mkdir t
# same COMMAND...: does the same with and without us, who write text and .cmt in turn
form=cmt
same() {
  status=0 traced_status=0
  [ $form = cmt ] && form=trace || form=cmt
  "$@" >out 2>err </dev/null || status=$?
  CMTTRACE_OUT=$PWD/t/%n.%p.$form LD_PRELOAD=$TRACER "$@" >out.traced 2>err.traced </dev/null || traced_status=$?
  [ $status = $traced_status ] && cmp -s out out.traced && cmp -s err err.traced ||
    { echo "$*: $traced_status, not $status: $(head -c 300 err.traced)" >&2; failed=1; }
  ls t | grep -q "${1##*/}" || { echo "$*: not traced" >&2; failed=1; }
}
same bash -c 'echo out; echo err >&2; exit 5'
same bash -c 'echo a b c | tr a-z A-Z | while read -r x; do echo $x; done; x=$(ls /nonexistent) || exit $?'
same /usr/bin/python3 -c 'import os, sys, threading, subprocess
threads = [threading.Thread(target=lambda: [bytes(i) for i in range(999)]) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sorted(os.listdir("/proc/self/fd"))[:3], subprocess.run(["false"]).returncode)
if os.fork() == 0: os._exit(3)
print(os.wait()[1]); sys.stderr.write("err"); sys.exit(6)'
same perl -e 'print `echo $_` for 1..3; warn "w\n"; fork or exit 3; wait; exit $? >> 8'
same git -C "$SOURCE" status --porcelain=v2 --branch
same g++ -x c++ -fsyntax-only -
same g++ -nonsense
echo 'int printf(const char*, ...); int main(int c, char** v) { return printf("%s %d\n", v[0], c) == 0; }' >a.c
same gcc -O2 -S -o - a.c
same gcc -g -O1 a.c -o a.out
same git -C "$SOURCE" log --stat -n 20
same perl -e 'my %h; $h{$_ % 999} .= chr 65 + $_ % 26 for 1..20000; print "$_ $h{$_}\n" for sort keys %h'
same bash -c 'declare -A h; for i in {1..2000}; do h[$i]=$((i * i)); done; for k in "${!h[@]}"; do echo "$k ${h[$k]}"; done | sort | cksum'
if command -v sqlite3 >/dev/null; then 
  same sqlite3 :memory: 'select 1; select broken;'
  same sqlite3 :memory: 'with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
    select i % 97, count(*), group_concat(i % 7, "") from n group by 1 order by 2, 1;'
fi

# The C library's own checks, which a library preloaded after the tracer makes.
cat >past_end.c <<'END'
#include <stdlib.h>
#include <string.h>
int main(void) {
  char* volatile block = malloc(24);
  memset(block, 1, 25);
  free(block);
  return 5;
}
END
gcc -O0 -w past_end.c -o past_end
debug=$(/sbin/ldconfig -p | sed -n 's/.*libc_malloc_debug\.so\.0 .*=> //p' | head -n 1)
if [ -n "$debug" ]; then
  for checks in MALLOC_CHECK_=3 GLIBC_TUNABLES=glibc.malloc.check=3; do
    status=0
    env "$checks" LD_PRELOAD="$TRACER $debug" CMTTRACE_OUT=$PWD/t/past_end.cmt ./past_end 2>err || status=$?
    [ "$status" = 134 ] && grep -q 'invalid pointer' err || { echo "$checks: $status, $(cat err)" >&2; failed=1; }
  done
else
  echo "not tested: MALLOC_CHECK_ needs libc_malloc_debug.so.0"
fi

# Another allocator that is preloaded after ours is traced, and does the work.
if /sbin/ldconfig -p | grep -q libjemalloc.so.2; then
  MALLOC_CONF=stats_print:true CMTTRACE_OUT=je.trace LD_PRELOAD="$TRACER libjemalloc.so.2" \
    "$BUILD/tests/preload/exchange" stated 2>err
  grep -q 'jemalloc statistics' err || { echo "jemalloc was not called" >&2; failed=1; }
  "$BUILD/tests/preload/exchange_check" je.trace stated
  CMTTRACE_OUT=je.%n.%p.trace LD_PRELOAD="$TRACER libjemalloc.so.2" /usr/bin/python3 -c 'print(1)'
  /usr/bin/python3 "$SOURCE/tests/preload/checks/trace.py" je.python3.*.trace
fi
for library in libjemalloc.so.2 libmimalloc.so.2 libtcmalloc_minimal.so.4; do
  /sbin/ldconfig -p | grep -q "$library" || { echo "not tested: $library is not installed"; continue; }
  CMTTRACE_OUT=$library.trace LD_PRELOAD="$TRACER $library" "$BUILD/tests/preload/exchange" stated
  "$BUILD/tests/preload/exchange_check" $library.trace stated
  LD_PRELOAD="$library $TRACER" CMTTRACE_OUT=$library.3.trace perl -e 'exit 3' 2>err && status=0 || status=$?
  [ $status = 3 ] && grep -q "^libcmttrace: not recorded unless it calls the next one: the malloc of .*$library" err ||
    { echo "$library before the tracer: $status, $(cat err)" >&2; failed=1; }
  grep -q "$library" <(LD_PRELOAD="$TRACER $library" CMTTRACE_OUT=$library.2.trace cat /proc/self/maps) || { echo "$library: not loaded" >&2; failed=1; }
done

# The tracer has a line to write, but nobody reads it, its file may not grow, or the pipe is full. The program goes on.
/usr/bin/python3 - "$TRACER" <<'END' || { echo "a line on standard error that cannot be written" >&2; failed=1; }
import fcntl, os, resource, subprocess, sys
environment = dict(os.environ, LD_PRELOAD=sys.argv[1], CMTTRACE_OUT="unread.trace", CMTTRACE_NONSENSE="1")
reads, unread = os.pipe()
os.close(reads)
reads, full = os.pipe()
fcntl.fcntl(full, fcntl.F_SETFL, os.O_NONBLOCK)
try:
    while True: os.write(full, b"x" * 4096)
except BlockingIOError:
    pass
fcntl.fcntl(full, fcntl.F_SETFL, 0)
with open("grown.log", "wb") as log: log.write(bytes(8192))
log = os.open("grown.log", os.O_WRONLY | os.O_APPEND)
limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
program = ["perl", "-e", "exit 3"]
for name, error, prepare in ("unread", unread, None), ("full", full, None), ("limited", log, limit):
    status = subprocess.run(program, stderr=error, env=environment, preexec_fn=prepare, timeout=120).returncode
    assert status == 3, (name, status)
seen = subprocess.run(program, stderr=subprocess.PIPE, env=environment)
assert seen.returncode == 3 and b"CMTTRACE_NONSENSE" in seen.stderr, seen
END
[ "$failed" = 0 ]
