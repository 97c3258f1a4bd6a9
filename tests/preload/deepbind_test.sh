# Libraries that a program loads with RTLD_DEEPBIND, as PHP does its own, are bound past a preloaded tracer. Their calls are recorded all the same, but for their constructors.

failed=0
complain() { echo "deepbind ($how $stacks): $*" >&2; failed=1; }
has() {  # COUNT LINE
  found=$(grep -cE "^$2( stack=[0-9]+)?\$" t.trace || true)
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

# Several threads load and unload: none calls a library that has not been looked at.
cat >loaded.c <<'END'
#include <stdlib.h>
void work(void) { for (int i = 0; i < 10; i++) free(malloc(43010)); }
END
cat >loads.c <<'END'
#include <dlfcn.h>
#include <pthread.h>
static void* load(void* name) {
  for (int i = 0; i < 300; i++) {
    void* library = dlopen(name, RTLD_NOW | RTLD_DEEPBIND);
    void (*work)(void) = 0;
    if (library) *(void**)&work = dlsym(library, "work");
    if (!work) return name;
    work();
    dlclose(library);
  }
  return 0;
}
int main(void) {
  pthread_t threads[4];
  void* failed;
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, load, i % 2 ? "./a.so" : "./b.so");
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], &failed);
    if (failed) return 1;
  }
  return 0;
}
END
gcc -O1 -fno-builtin -shared -fPIC -o a.so loaded.c
cp a.so b.so
gcc -o loads loads.c -pthread -ldl
rm -f t.trace
how=threads
LD_PRELOAD=$TRACER CMTTRACE_OUT=t.trace ./loads || complain "exit $?"
[ "$(grep -c '^malloc(43010)' t.trace)" = 12000 ] || complain "$(grep -c '^malloc(43010)' t.trace) of 12000 calls"

# Where another allocator is preloaded, such a library has libc's: its blocks must not come to the other one.
jemalloc=$(/sbin/ldconfig -p | sed -n '/x86-64/s/.*libjemalloc\.so\.2.* => //p' | head -1)
for how in lazy now; do
  [ -n "$jemalloc" ] || { echo 'not tested: libjemalloc.so.2 is not installed'; break; }
  cmttrace -o other.cmt -- env LD_PRELOAD="$TRACER $jemalloc" "$BUILD/tests/preload/faults" deepbound_$how "$plugin" 2>err ||
    complain "jemalloc: exit $?: $(cat err)"
done
exit $failed
