# operator new and delete are events of their own, once each; their exceptions reach the program.

operators=$BUILD/tests/preload/operators
failed=0
traced() { rm -f t.trace; LD_PRELOAD=$TRACER CMTTRACE_OUT=t.trace "$operators" "$1" || { echo "$1: exit $?" >&2; failed=1; }
  /usr/bin/python3 "$SOURCE/tests/preload/checks/trace.py" t.trace >/dev/null || failed=1
  grep -oE '^(operator|malloc\(800|malloc\(700[0-9]{2}\)|free\(0).*' t.trace | sed 's/[0-9a-f]*<[0-9]*>/B/g' >lines || true; }
expect() { diff - lines || { echo "$1: not the events expected (<)" >&2; failed=1; }; }

traced all
expect all <<'END'
operator new(70001) = B
operator delete(B)
operator new(70002) = B
operator delete(B, 70002)
operator new(70003, nothrow) = B
operator delete(B)
operator new(70004, align=64) = B
operator delete(B, align=64)
operator new(70005, align=128) = B
operator delete(B, 70005, align=128)
operator new(70006, align=64, nothrow) = B
operator delete(B, align=64)
operator new[](70007) = B
operator delete[](B)
operator new[](70008) = B
operator delete[](B, 70008)
operator new[](70009, nothrow) = B
operator delete[](B)
operator new[](70010, align=64) = B
operator delete[](B, align=64)
operator new[](70011, align=64) = B
operator delete[](B, 70011, align=64)
operator new[](70012, align=64, nothrow) = B
operator delete[](B, align=64)
operator delete(0)
END

# Words that earlier calls have left on the stack are no signal's frame: the calls inside are no events.
CMTTRACE_STACKS=1 traced beside
sed -i 's/ stack=.*//' lines
expect beside <<'END'
operator new[](70013, nothrow) = B
operator delete[](B)
END

# Each failed attempt is an event, what a new_handler does is the program's own, and nothing after a throw is missing.
traced thrown
expect thrown <<'END'
operator new(4611686018427387903) = 0
malloc(80003) = B
malloc(80002) = B
malloc(80002) = B
operator new(4611686018427387903, nothrow) = 0
operator new(4611686018427387903) = 0
malloc(80001) = B
operator new(4611686018427387903) = 0
malloc(80001) = B
malloc(80004) = B
END

# A handler that leaves operator new by a jump, or throws, in its aligned and nothrow forms.
traced left
expect left <<'END'
operator new(4611686018427387903) = 0
malloc(80005) = B
operator new(4611686018427387903) = 0
malloc(80005) = B
malloc(80007) = B
operator new[](4611686018427387903, align=256) = 0
malloc(80005) = B
operator new[](4611686018427387903, align=256) = 0
malloc(80005) = B
malloc(80008) = B
operator new(4611686018427387903, nothrow) = 0
malloc(80006) = B
operator new[](4611686018427387903, align=64, nothrow) = 0
malloc(80006) = B
operator new(4611686018427387903, align=64) = 0
malloc(80006) = B
malloc(80002) = B
END

# Some allocators have an operator new of their own, which throws where the tracer does not see it. The tracer takes no
# later call, nor that of a handler, for a call inside of that operator. It records no call twice.
for library in libjemalloc.so.2 libmimalloc.so.2 libtcmalloc_minimal.so.4; do
  /sbin/ldconfig -p | grep -q "$library" || { echo "not tested: $library is not installed"; continue; }
  TRACER="$TRACER $library" traced all
  [ "$(grep -c '^operator new[^(]*(700' lines)" = 12 ] && [ "$(grep -c '^operator delete' lines)" = 13 ] && ! grep -q '^malloc(700' lines ||
    { echo "$library: not each operator once" >&2; failed=1; }
  # mimalloc ends a program that has no memory.
  LD_PRELOAD=$library "$operators" left 2>/dev/null || continue
  TRACER="$TRACER $library" traced left
  [ "$(grep -o '^malloc(8000[0-9])' lines | tr -dc '0-9\n' | paste -sd' ')" = \
    '80005 80005 80007 80005 80005 80008 80006 80006 80006 80002' ] || { echo "$library: $(cat lines)" >&2; failed=1; }
done

# A program that defines two forms alone: the others lead to these, and are no events. Its list of free blocks and its
# calls of malloc and free are the program's own. The program prints the blocks that malloc has, less those at its begin.
cat >own.cpp <<'END'
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
struct Free { Free* next; };
static Free* list;
static long live;
void* operator new(std::size_t bytes) {
  if (Free* const first = list; first && bytes <= 900) return list = first->next, first;
  ++live;
  return std::malloc(bytes <= 900 ? 900 : bytes);
}
void operator delete(void* block) noexcept {
  static int calls;
  if (++calls % 3 != 0) { list = new (block) Free{list}; return; }
  --live;
  std::free(block);
}
struct alignas(128) Aligned { char bytes[128]; };
int main() {
  for (int i = 0; i < 20; ++i) {
    ::operator delete(::operator new(700), std::size_t{700});
    ::operator delete(::operator new(701, std::nothrow), std::nothrow);
    ::operator delete[](::operator new[](702));
    ::operator delete[](::operator new[](703, std::nothrow), std::size_t{703});
    delete new Aligned;  // the C++ library's forms: they call the program's neither way
  }
  std::printf("%ld\n", live);
}
END
g++ -O0 -std=c++17 -o own own.cpp
# An allocator that has all forms does not lead to the program's: its own are recorded, once each.
for library in libjemalloc.so.2 libmimalloc.so.2 libtcmalloc_minimal.so.4; do
  /sbin/ldconfig -p | grep -q "$library" || continue
  rm -f own.trace
  LD_PRELOAD="$TRACER $library" CMTTRACE_OUT=own.trace ./own >/dev/null
  [ "$(grep -c '^operator new\[\](70[23]' own.trace)" = 40 ] && [ "$(grep -c '^operator delete\[\](' own.trace)" = 40 ] ||
    { echo "own operators with $library: $(grep -c '^operator new\[\]' own.trace) arrays" >&2; failed=1; }
done
for stacks in 0 1; do
  rm -f own.trace
  live=$(LD_PRELOAD=$TRACER CMTTRACE_OUT=own.trace CMTTRACE_STACKS=$stacks ./own)
  awk -v live="$live" '/^malloc\(900\)/ { made++ } /^free\([^0]/ { ended++ } /^operator new\(128, align=128\)/ { aligned++ }
    /^operator delete/ { deleted++ } /^# (repairs|lost|unknown)/ { print; bad = 1 }
    END { if (bad || made - ended != live || made < 20 || aligned != 20 || deleted != 20) {
      print "own operators, stacks '$stacks': " made " made, " ended " ended, " live " live, " aligned + 0 " and " deleted + 0 " aligned"; exit 1 } }' \
    own.trace >&2 || failed=1
done

# A plugin's C++ library is not in the program's scope: its operator new is found all the same.
cat >plugin.cpp <<'END'
extern "C" int use() { int* p = new int[17502]; delete[] p; return 0; }
END
cat >host.c <<'END'
#include <dlfcn.h>
int main(void) { void* h = dlopen("./plugin.so", RTLD_NOW | RTLD_LOCAL); int (*use)(void); if (!h) return 3;
  *(void**)&use = dlsym(h, "use"); return use ? use() : 4; }
END
g++ -O0 -shared -fPIC -o plugin.so plugin.cpp
gcc -o host host.c
LD_PRELOAD=$TRACER CMTTRACE_OUT=plugin.trace ./host || { echo "plugin: exit $?" >&2; failed=1; }
grep -q '^operator new\[\](70008) = ' plugin.trace && grep -q '^operator delete\[\](' plugin.trace ||
  { echo "plugin: no event" >&2; failed=1; }
[ "$failed" = 0 ]
