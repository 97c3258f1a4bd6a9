# Programs that crash, fork, exec, daemonise and start threads by the thousand: they work as without the tracer, and each
# process has a complete trace.

. "$SOURCE/tests/waiting.sh"
programs=$BUILD/tests/preload
failed=0
complain() { echo "$what ($form): $*" >&2; failed=1; }
# run STATUS WHAT...: traced, in an empty folder t.
run() {
  wanted=$1 what=$2 status=0
  shift
  rm -rf t
  mkdir t
  (cd t && timeout 240 env LD_PRELOAD="$TRACER" CMTTRACE_OUT=%n.%p.$form "$programs/faults" "$@" >../out 2>../err) || status=$?
  [ "$status" = "$wanted" ] || complain "exit $status: $(cat err)"
  ! grep libcmttrace err || complain "said: $(cat err)"
}
# read_traces: each of them becomes text, and is checked.
read_traces() {
  /usr/bin/python3 "$SOURCE/tests/preload/checks/await_closed.py" t/*
  for trace in t/*; do
    trace2cmt --to=text "$trace" >text 2>said || complain "$(cat said)"
    mv text "$trace"
  done
  /usr/bin/python3 "$SOURCE/tests/preload/checks/trace.py" t/* >/dev/null || complain "a broken trace"
}
traced() { run "$@" && read_traces; }
files() { [ "$(ls t | wc -l)" = "$1" ] || complain "$(ls t | wc -l) traces, not $1"; }
# has COUNT LINE: so many lines in all traces that match as a whole, but for the thread
has() {
  found=$(cat t/* | grep -cE "^$2( thread=[0-9]+)?( time=[0-9]+)?( stack=[0-9]+)?\$" || true)
  [ "$found" = "$1" ] || complain "$found lines of $2, not $1"
}
b='[0-9a-f]+<[0-9]+>'

# Every day also as text.
for form in cmt ${CMT_DAILY:+trace}; do
  traced 0 threads
  has 1000 "malloc\(30[0-9]{3}\) = $b"
  has 1000 'thread_start\(\)'
  has 1000 'thread_exit\(\)'
  traced 0 exits
  has 200 "malloc\(31000\) = $b"
  has 200 "malloc\(31001\) = $b"
  traced 0 plugins "$programs/libplugin.so"
  has 200 "malloc\(32000\) = $b"

  traced 134 corrupts
  has 1 "malloc\(33000\) = $b"
  traced 139 crashes
  has 1 "malloc\(33001\) = $b"
  traced 9 exit_in_thread
  has 1 "malloc\(33002\) = $b"

  traced 0 tree 5
  files 32
  has 32 "malloc\(34000\) = $b"
  traced 0 chain 20
  files 20
  has 20 "malloc\(350[0-9]{2}\) = $b"
  traced 0 fork_quietly
  files 2
  has 1 "malloc\(38001\) = $b"

  traced 0 clone_by_hand
  files 2
  for size in 38003 38004 38005 38006; do has 1 "malloc\($size\) = $b"; done
  traced 0 other_namespace
  has 0 "malloc\(38007\) = $b"
  has 1000 "malloc\(38008\) = $b"

  TRACER="$TRACER $programs/libplugin.so" CMTTRACE_TIME=1 traced 0 set_title
  files 2
  has 1 "malloc\(38002\) = $b"
  ! grep -h '^malloc' t/* | grep -v ' time=' || complain 'an event of a child without its time'

  run 0 daemonise
  until_true '[ "$(for trace in t/*; do trace2cmt --to=text "$trace"; done | grep -c "malloc(36000)")" = 1000 ]'
  read_traces
  has 1000 "malloc\(36000\) = $b"
done

# A program with its own malloc, as Chromium is: in its forked child a thread is the first that records anything.
rm -rf t
mkdir t
(cd t && timeout 240 env LD_PRELOAD="$TRACER" "$programs/own_malloc" 2>../err) || { echo "own_malloc: exit $?" >&2; failed=1; }
[ "$(cat err)" = "libcmttrace: not recorded unless it calls the next one: the malloc of $programs/own_malloc" ] ||
  { echo "own_malloc: said: $(cat err)" >&2; failed=1; }
[ "$(cat t/* | grep -c '^thread_name("in a child")')" = 1 ] || { echo "own_malloc: $(cat t/*)" >&2; failed=1; }

# A program with its own free alone: it gets no block that is the tracer's own. One that calls the next free is recorded.
cat >own_free.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#ifdef NEXT
void free(void* block) {
  static void (*next)(void*);
  if (!next) *(void**)&next = dlsym(RTLD_NEXT, "free");
  next(block);
}
#else
extern void __libc_free(void*);
void free(void* block) { __libc_free(block); }
#endif
int main(void) { for (int i = 0; i < 9; i++) free(malloc(33000)); return 0; }
END
gcc -O1 -fno-builtin -o own_free own_free.c
gcc -O1 -fno-builtin -DNEXT -o next_free own_free.c -ldl
for sampled in '' 1K; do
  rm -f t.cmt
  CMTTRACE_SAMPLE_BYTES=$sampled CMTTRACE_OUT=t.cmt LD_PRELOAD=$TRACER ./own_free 2>err || { echo "own_free: exit $?" >&2; failed=1; }
  [ "$(cat err)" = "libcmttrace: not recorded unless it calls the next one: the free of ./own_free" ] ||
    { echo "own_free: said: $(cat err)" >&2; failed=1; }
  rm -f t.trace
  CMTTRACE_OUT=t.trace LD_PRELOAD=$TRACER ./next_free 2>err && grep -q 'the free of ./next_free$' err && [ "$(grep -c '^free([0-9a-f]' t.trace)" -ge 9 ] ||
    { echo "next_free: exit $?: $(cat err t.trace)" >&2; failed=1; }
done

# Its own malloc and free, which call the next ones: recorded, and the line does not deny it.
cat >next_both.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
void* malloc(size_t bytes) {
  static void* (*next)(size_t);
  if (!next) *(void**)&next = dlsym(RTLD_NEXT, "malloc");
  return next(bytes);
}
void free(void* block) {
  static void (*next)(void*);
  if (!next) *(void**)&next = dlsym(RTLD_NEXT, "free");
  next(block);
}
int main(void) { for (int i = 0; i < 9; i++) free(malloc(33000)); return 0; }
END
gcc -O1 -fno-builtin -o next_both next_both.c -ldl
rm -f t.trace
CMTTRACE_OUT=t.trace LD_PRELOAD=$TRACER ./next_both 2>err && [ "$(cat err)" = "libcmttrace: not recorded unless it calls the next one: the malloc of ./next_both" ] && [ "$(grep -c '^malloc(33000)' t.trace)" = 9 ] ||
  { echo "next_both: exit $?: $(cat err t.trace)" >&2; failed=1; }
[ "$failed" = 0 ]
