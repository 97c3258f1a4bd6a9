# script/check finds what it says that it finds, in a repository that is wrong in one way at a time.

git init -q tree
cd tree
mkdir -p script libcmt/text libcmt/heap libcmt/trace overhead lifetimes preload
cp "$SOURCE/script/check" script/
cp "$SOURCE/.clang-format" .
failed=0

# tree FILE LINE...: a repository of one file with these lines.
tree() {
  file=$1; shift
  git rm -rfq --cached . 2>/dev/null || true
  printf '%s\n' "$@" >"$file"
  git add "$file"
}
refuses() {
  tree "${@:2}"
  ! script/check >out 2>&1 && grep -q -- "$1" out || { echo "not found: $*: $(cat out)" >&2; failed=1; }
}
accepts() {
  tree "$@"
  script/check >out 2>&1 || { echo "wrongly refused: $*: $(cat out)" >&2; failed=1; }
}

refuses 'text/a.h.*may not' libcmt/text/a.h '#include "heap/b.h"'
refuses 'text/a.h.*may not' libcmt/text/a.h '#include "../heap/b.h"'
refuses 'text/a.h.*may not' libcmt/text/a.h '#include "trace/b.h"'
refuses 'overhead/a.cpp.*may not' overhead/a.cpp '#include "lifetimes/b.h"'
refuses 'preload/a.c.*may not' preload/a.c '#include "cmt/event.h"'
accepts libcmt/text/a.h '#include "cmt/event.h"' '#include "text/b.h"'
accepts libcmt/trace/a.h '#include "heap/b.h"' '#include "text/b.h"'
accepts overhead/a.cpp '#include "heap/b.h"' '#include "overhead/b.h"'

refuses 'a.cpp: 501 lines' overhead/a.cpp $(yes '//' | head -n 501)
accepts overhead/a.cpp $(yes '//' | head -n 500)
long() { echo 'void long_one(int* a) {'; seq "$1" | sed 's/.*/  ++*a;/'; echo '}'; }
mapfile -t body < <(long 69)
refuses 'a.cpp:1: long_one has 71 lines' overhead/a.cpp "${body[@]}"
mapfile -t body < <(long 68)
accepts overhead/a.cpp "${body[@]}"
refuses 'clang-format -i' overhead/a.cpp 'int  a;'
refuses 'home.ann' overhead/a.cpp "// see /home""/ann/notes"
exit $failed
