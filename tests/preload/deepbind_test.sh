# Libraries that a program loads with RTLD_DEEPBIND, as PHP does its own, are bound past a preloaded tracer. Their calls are recorded all the same, but for their constructors.

failed=0
complain() { echo "deepbind ($how $stacks): $*" >&2; failed=1; }
has() {  # COUNT LINE
  found=$(grep -cE "^$2( (stack|thread)=[0-9]+)*\$" t.trace || true)
  [ "$found" = "$1" ] || complain "$found lines of $2, not $1"
}
b='[0-9a-f]+<[0-9]+>'
plugin=$BUILD/tests/preload/libdeepbound.so
for stacks in 0 1; do
  for how in lazy now; do
    rm -f t.trace
    CMTTRACE_STACKS=$stacks LD_PRELOAD=$TRACER CMTTRACE_OUT=t.trace "$BUILD/tests/preload/faults" deepbound_$how "$plugin" >out 2>&1 ||
      complain "exit $?"
    [ ! -s out ] || complain "said: $(cat out)"
    has 60 "malloc\(43001\) = $b"
    has 60 "realloc\($b, 43002\) = $b"
    has 60 "calloc\(1, 43003\) = $b"
    has 0 "malloc\(43000\) = $b"
  done
done

# Threads that load at once: a load that another thread's holds up is not passed over (1,200 loads, 60 calls for three).
how=at_once stacks=0
for i in 0 1 2 3; do cp "$plugin" "plugin$i"; done
rm -f t.trace
LD_PRELOAD=$TRACER CMTTRACE_OUT=t.trace "$BUILD/tests/preload/faults" deepbound_at_once ./plugin >out 2>&1 ||
  complain "exit $?: $(cat out)"
has 24000 "malloc\(43001\) = $b"
has 24000 "calloc\(1, 43003\) = $b"

# A program whose own dl_iterate_phdr has a lock that is not recursive.
how=own_walk
cat >own_walk.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
int dl_iterate_phdr(int (*visit)(struct dl_phdr_info*, size_t, void*), void* data) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static int (*real)(int (*)(struct dl_phdr_info*, size_t, void*), void*);
  pthread_mutex_lock(&mutex);
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, "dl_iterate_phdr");
  const int result = real(visit, data);
  pthread_mutex_unlock(&mutex);
  return result;
}
int main(int count, char** words) {
  void* library = count == 2 ? dlopen(words[1], RTLD_NOW | RTLD_DEEPBIND) : NULL;
  void (*use)(int) = NULL;
  if (library) *(void**)&use = dlsym(library, "use_plugin");
  if (use) use(20);
  return !use;
}
END
gcc -O1 -o own_walk own_walk.c -ldl -lpthread
rm -f t.trace
timeout -s KILL 100 env CMTTRACE_OUT=t.trace LD_PRELOAD="$TRACER" ./own_walk ./plugin0 >out 2>&1 || complain "exit $?: $(cat out)"
has 20 "malloc\(43001\) = $b"

# Where another allocator is preloaded, such a library has libc's: its blocks must not come to the other one.
jemalloc=$(/sbin/ldconfig -p | sed -n '/x86-64/s/.*libjemalloc\.so\.2.* => //p' | head -1)
for how in lazy now; do
  [ -n "$jemalloc" ] || { echo 'not tested: libjemalloc.so.2 is not installed'; break; }
  cmttrace -o other.cmt -- env LD_PRELOAD="$TRACER $jemalloc" "$BUILD/tests/preload/faults" deepbound_$how "$plugin" 2>err ||
    complain "jemalloc: exit $?: $(cat err)"
done
exit $failed
