# Lines by debug information that is only for lines, in split units of DWARF 4, and compressed with zstd.

export DEBUGINFOD_URLS=
failed=0
complain() { echo "$*" >&2; failed=1; }

cat >lines.cpp <<'END'
#include <cstdlib>
#include <memory>
void* volatile kept;
__attribute__((noinline)) void plain() {
  kept = std::malloc(1000);
}
__attribute__((noinline)) void first() {
  kept = std::allocator<int>().allocate(500);
}
__attribute__((noinline)) void second() {
  kept = std::allocator<int>().allocate(750);
}
int main() {
  plain();
  first();
  second();
  kept = nullptr;
}
END
# rows NAME LABELS...: each label has a row by line; the blocks have 1000, 2000 and 3000 bytes.
rows() {
  local name=$1 bytes=0 label
  shift
  cmttrace --stacks -o "$name.cmt" -- "./$name" 2>messages || complain "$name: $(cat messages)"
  lifetimes --by=line --min=0 --csv "$name.cmt" 2>messages | cut -d, -f1-3 >"$name.rows"
  [ ! -s messages ] || complain "$name: $(cat messages)"
  for label in "$@"; do
    grep -q "^\(.*/\)\?$label,1,$((bytes += 1000))$" "$name.rows" || complain "$name: no $label: $(cat "$name.rows")"
  done
}
in_lines() { rows "$1" lines.cpp:5 lines.cpp:8 lines.cpp:11; }

if command -v clang++ >/dev/null; then
  for options in -gline-tables-only '-gdwarf-4 -gline-tables-only'; do
    clang++ -O2 -fno-builtin $options -o "tables${options%% *}" lines.cpp || complain "clang++ $options"
    in_lines "tables${options%% *}"
  done
  # Where no debug information says what is inlined, a line of the library would be that of all callers.
  for options in -gline-directives-only '-gdwarf-4 -gline-directives-only'; do
    clang++ -O2 -fno-builtin $options -o "directives${options%% *}" lines.cpp || complain "clang++ $options"
    rows "directives${options%% *}" lines.cpp:5 'first()' 'second()'
  done
else
  echo 'skipped: clang++: it is not installed'
fi
command -v g++ >/dev/null || { echo 'skipped: g++: it is not installed'; exit $failed; }
g++ -O2 -g -o full lines.cpp && in_lines full || complain 'g++ -g'
g++ -O2 -gdwarf-4 -gsplit-dwarf -o split lines.cpp && in_lines split || complain 'g++ -gsplit-dwarf'
rm -f split*.dwo  # the skeleton unit still has the table of lines
rows split lines.cpp:5 'first()' 'second()'

# libelf before 0.189 knows no zstd.
if objcopy --compress-debug-sections=zstd full packed 2>/dev/null; then
  cmttrace --stacks -o packed.cmt -- ./packed 2>messages || complain "zstd: $(cat messages)"
  lifetimes --by=line --min=0 --csv packed.cmt >packed.rows 2>messages
  if grep -q 'lines.cpp:5,' packed.rows; then
    [ ! -s messages ] || complain "zstd: $(cat messages)"
  else
    [ "$(cat messages)" = "lifetimes: $PWD/packed: libelf cannot read its debug information, which is compressed with zstd; lines are not known (see objcopy --decompress-debug-sections)" ] ||
      complain "zstd: $(cat messages)"
    objcopy --only-keep-debug --compress-debug-sections=zstd full linked.debug
    objcopy --strip-debug --add-gnu-debuglink=linked.debug full linked
    cmttrace --stacks -o linked.cmt -- ./linked 2>messages || complain "zstd: $(cat messages)"
    lifetimes --by=line linked.cmt 2>&1 >/dev/null | grep -q "^lifetimes: $PWD/linked.debug: libelf cannot read " ||
      complain "zstd, separate: $(lifetimes --by=line linked.cmt 2>&1)"
  fi
fi
exit $failed
