# Programs for musl: each call is in a trace, as planted and as a shim counts it, which is loaded after the tracer.

command -v musl-gcc >/dev/null || { echo "skipped: musl-gcc is not installed"; exit 77; }
. "$SOURCE/tests/waiting.sh"
programs=$SOURCE/tests/preload/programs
checks=$SOURCE/tests/preload/checks
failed=0
complain() { echo "$*" >&2; failed=1; }
# Debian's musl-gcc leaves the index of unwind tables out.
build() { musl-gcc -O1 -g -D_GNU_SOURCE -fno-builtin -Wl,--eh-frame-hdr "$@"; }
build "$programs/musl.c" -o musl
build -DLIBRARY -shared -fPIC "$programs/musl.c" -o libloaded.so
build -shared -fPIC "$programs/countmalloc.c" -o libcount.so
build "$programs/endings.c" -o endings

# calls TRACE: "free 3 malloc 4".
calls() { trace2cmt --to=text "$1" 2>>said | sed -nE 's/^([a-z_]+( new| delete)?(\[\])?)\(.*/\1/p' | grep -vE '^(thread|mark|resident|touch|sample)' |
  sort | uniq -c | awk '{ n = $1; $1 = ""; printf "%s %s ", substr($0, 2), n }'; }
# kinds HOW TRACES CALLS...: the traces of a program and its children have these calls, in any order of processes; a shim
# agrees.
kinds() {
  local how=$1 wanted=$2 found
  shift 2
  mkdir "$how" "$how.shim"
  (cd "$how" && CMTTRACE_STACKS=1 LD_PRELOAD=$TRACER ../musl "$how" ../libloaded.so) || complain "$how: exit $?"
  (cd "$how.shim" && COUNT_OUT=$PWD LD_PRELOAD="$TRACER ../libcount.so" ../musl "$how" ../libloaded.so) || complain "$how: exit $?"
  /usr/bin/python3 "$checks/compare_counts.py" "$how.shim" >/dev/null || complain "$how: the shim has counted others"
  found=$(for trace in "$how"/musl.*.trace; do calls "$trace"; echo; done | sort)
  [ "$(grep -c . <<<"$found")" = "$wanted" ] || complain "$how: $(ls "$how")"
  [ "$found" = "$(printf '%s \n' "$@" | sort)" ] || complain "$how: $found"
}
all='aligned_alloc 100 calloc 100 free 800 malloc 100 memalign 100 posix_memalign 100 realloc 200 reallocarray 100 valloc 100'
kinds all 1 "$all"
kinds threads 1 'free 4008 malloc 4008'
kinds crowd 1 'free 3000 malloc 3000'
kinds guarded 1 'free 501 malloc 502'
kinds forks 4 'free 20 malloc 20' 'free 1022 malloc 1022' 'free 1023 malloc 1023' 'free 1024 malloc 1024'
kinds signals 1 'free 400 malloc 400'
kinds loads 1 'calloc 30 free 30 malloc 1'

# Programs for glibc and for musl that start each other. The shim is for one of them.
mkdir starts
cmttrace --follow=yes -o starts/t.cmt -- ./musl starts 2>said || complain "starts: $(cat said)"
for trace in starts/*.cmt; do echo "$(calls "$trace") $(trace2cmt --to=text "$trace" | sed -n 's/^#cmt program=//p')"; done >found
[ "$(grep -cF "$all  musl" found)" = 4 ] && grep -q ' sh$' found && grep -q ' true$' found && grep -qE '^free 2 malloc 1  musl' found ||
  complain "starts: $(cat found)"

# All ends of a process; preload_endings_test has them for glibc's programs.
[ -z "${CMT_DAILY:-}" ] || ENDINGS=$PWD/endings bash -euE -o pipefail -c "mkdir ends; cd ends; . $SOURCE/tests/preload/endings_test.sh" 2>said || complain "ends: $(cat said)"

# Stacks end at functions of libc, where they are marked.
cmttrace --stacks -o s.cmt ./musl stacks 2>said || complain "stacks: $(cat said)"
lifetimes --folded=live s.cmt | sort >found
grep -qE '^\[cut\];.*;main;.*outer;inner 30$' found && grep -qE '^\[cut\];[^;]*;order 31$' found && grep -qx '\[cut\];strdup 8' found &&
  [ "$(grep -vc '^\[cut\]' found)" = 0 ] || complain "stacks: $(cat found)"

# Samples, of each call; memory that is touched; a collector that finds no library of musl's.
cmttrace --sample-bytes=1 -o samples.cmt ./musl threads 2>said || complain "samples: $(cat said)"
trace2cmt --info samples.cmt >said
[ "$(grep -cE '^  (malloc|free) +4,008$' said)" = 2 ] || complain "samples: $(cat said)"
mkdir libraries
build -shared -fPIC -x c /dev/null -o libraries/libzstd.so.1
LD_LIBRARY_PATH=$PWD/libraries LD_PRELOAD=$TRACER CMTTRACE_OUT=l.trace ./musl all 2>said || complain "libraries: $(cat said)"
[ "$(calls l.trace)" = "$all " ] || complain "libraries: $(calls l.trace)"
LD_PRELOAD=$TRACER CMTTRACE_OUT=named.trace /lib/ld-musl-x86_64.so.1 ./musl all
[ "$(calls named.trace)" = "$all " ] || complain "by the loader's name: $(calls named.trace)"

# C++: operators of a shared libstdc++, here glibc's, with what musl lacks.
if command -v g++ >/dev/null; then
  specs="-specs=$(find /usr/lib* -name musl-gcc.specs | head -n 1) -Wl,--eh-frame-hdr"
  build -c -fPIC -fvisibility=hidden "$programs/of_glibc.c"
  gcc $specs -shared -Wl,-Bsymbolic of_glibc.o -Wl,--whole-archive "$(g++ -print-file-name=libstdc++.a)" -Wl,--no-whole-archive -o libcpp.so
  printf 'struct alignas(64) Wide { char bytes[64]; };\nint main() { for (int i = 0; i < 50; i++) { delete new int(i); delete[] new char[9]; delete new Wide; try { throw i; } catch (int) {} } }\n' >a.cpp
  g++ -std=c++17 -O0 -c a.cpp
  gcc $specs a.o of_glibc.o libcpp.so -Wl,-rpath,"$PWD" -o cpp
  cmttrace -o cpp.cmt ./cpp 2>said || complain "C++: exit $?"
  calls cpp.cmt | grep -qE 'operator delete 100 operator delete\[\] 50 operator new 100 operator new\[\] 50 $' || complain "C++: $(calls cpp.cmt)"
fi

# A static program and a running one are refused, in one line that says what to do.
build -static "$programs/musl.c" -o fixed
cmttrace -o fixed.cmt ./fixed all 2>said || [ $? = 125 ] || complain "static: not 125"
grep -q 'fixed is linked statically: nothing can be recorded; link it without -static' said || complain "static: $(cat said)"
./musl waits &
until_true "grep -q musl /proc/$!/maps"
status=0
cmttrace --attach=$! -o attached.cmt 2>said || status=$?
kill $!
[ "$status" != 0 ] && [ "$(wc -l <said)" = 1 ] && grep -q 'uses musl, whose loader' said || complain "attach: exit $status, $(cat said)"
[ "$failed" = 0 ]
