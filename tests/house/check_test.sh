# script/check finds each kind of fault, in a repository with one fault at a time.

git init -q tree
cd tree
mkdir -p script trace2cmt/input trace2cmt/sinks trace2cmt/inspect libcmt/text libcmt/trace toolkit/output overhead preload/cfi preload/program preload/collector toolkit/symbols toolkit/remote_call cmttrace/attach cmtreplay/plan cmtreplay/run cmtreplay/worker cmtwatch/recording cmtwatch/report
cp "$SOURCE/script/check" script/
printf '#!/bin/sh\n' >script/plain_words  # until its rules are tested, below: it takes most of the time
chmod +x script/plain_words
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

# Each run takes seconds, so all forbidden includes are in one repository, and all others in another: a file each.
patterns=()
number=0
add() {  # add FILE LINE...
  file=${1%.*}$((++number)).${1##*.}
  printf '%s\n' "${@:2}" >"$file"
  git add "$file"
}
fault() { add "${@:2}"; patterns+=("${1/a./a$number.}"); }

fault 'text/a.h.*may not' libcmt/text/a.h '#include "libcmt/heap/b.h"'
fault 'text/a.h.*may not' libcmt/text/a.h '#include "../heap/b.h"'
fault 'text/a.h.*may not' libcmt/text/a.h '#include "libcmt/trace/b.h"'
fault 'trace/a.h.*may not' libcmt/trace/a.h '#include "toolkit/output/b.h"'
fault 'output/a.h.*may not' toolkit/output/a.h '#include "cmt/event.h"'
fault 'overhead/a.cpp.*may not' overhead/a.cpp '#include "lifetimes/b.h"'
fault 'input/a.cpp.*may not' trace2cmt/input/a.cpp '#include "trace2cmt/inspect/b.h"'
fault 'sinks/a.cpp.*may not' trace2cmt/sinks/a.cpp '#include "trace2cmt/options.h"'
fault 'program/a.c.*may not' preload/program/a.c '#include "cmt/event.h"'
fault 'program/a.c.*may not' preload/program/a.c '#include "preload/collector/order/order.h"'
fault 'cfi/a.c.*may not' preload/cfi/a.c '#include "preload/protocol.h"'
fault 'output/a.h.*may not' toolkit/output/a.h '#include "preload/cfi/b.h"'
fault 'collector/a.cpp.*may not' preload/collector/a.cpp '#include "toolkit/output/b.h"'
fault 'plan/a.h.*may not' cmtreplay/plan/a.h '#include "cmtreplay/run/b.h"'
fault 'run/a.h.*may not' cmtreplay/run/a.h '#include "cmtreplay/worker/b.h"'
fault 'worker/a.c.*may not' cmtreplay/worker/a.c '#include "cmtreplay/plan/b.h"'
fault 'worker/a.c.*may not' cmtreplay/worker/a.c '#include "toolkit/process/b.h"'
fault 'recording/a.h.*may not' cmtwatch/recording/a.h '#include "cmtwatch/report/b.h"'
! script/check >out 2>&1 || { echo 'forbidden includes are accepted' >&2; failed=1; }
for pattern in "${patterns[@]}"; do
  grep -q -- "$pattern" out || { echo "not found: $pattern: $(cat out)" >&2; failed=1; }
done
git rm -rfq --cached .

add trace2cmt/inspect/a.cpp '#include "trace2cmt/input/c.h"' '#include "trace2cmt/inspect/b.h"'
add cmtwatch/report/a.h '#include "cmtwatch/recording/b.h"' '#include "cmtwatch/sample/b.h"'
add cmtreplay/worker/a.c '#include "cmtreplay/protocol.h"' '#include "cmtreplay/worker/b.h"'
add cmtreplay/run/a.h '#include "cmtreplay/plan/b.h"' '#include "toolkit/process/b.h"'
add libcmt/text/a.h '#include "cmt/event.h"' '#include "libcmt/text/b.h"'
add libcmt/trace/a.h '#include "libcmt/heap/b.h"' '#include "libcmt/text/b.h"'
add preload/collector/a.cpp '#include "libcmt/trace/b.h"' '#include "preload/protocol.h"'
add preload/program/a.c '#include "preload/cfi/b.h"' '#include "preload/protocol.h"'
add cmttrace/attach/a.cpp '#include "preload/attach.h"' '#include "toolkit/remote_call/b.h"'
add toolkit/remote_call/a.cpp '#include "preload/cfi/b.h"' '#include "toolkit/process/b.h"'
add toolkit/symbols/a.cpp '#include "preload/cfi/b.h"' '#include "toolkit/process/b.h"'
add overhead/a.cpp '#include "libcmt/heap/b.h"' '#include "overhead/b.h"' '#include "toolkit/output/b.h"'
script/check >out 2>&1 || { echo "includes are wrongly refused: $(cat out)" >&2; failed=1; }

refuses 'perf.data: a file of unknown kind' perf.data x

refuses 'a.cpp: 801 lines' overhead/a.cpp $(yes '//' | head -n 801)
accepts overhead/a.cpp $(yes '//' | head -n 800)
long() { echo 'void long_one(int* a) {'; seq "$1" | sed 's/.*/  ++*a;/'; echo '}'; }
mapfile -t body < <(long 69)
refuses 'a.cpp:1: long_one has 71 lines' overhead/a.cpp "${body[@]}"
mapfile -t body < <(long 68)
accepts overhead/a.cpp "${body[@]}"
refuses 'clang-format -i' overhead/a.cpp 'int  a;'
refuses 'home.ann' overhead/a.cpp "// see /home""/ann/notes"

# Plain language: one file without a purpose is allowed in overhead, and nothing else.
cp "$SOURCE/script/plain_words" script/
printf 'folder,rule,most\noverhead,purpose,1\n' >script/plain_words.csv
refuses "overhead: 1 places of rule 'opening', more than 0" overhead/a.cpp '// What is read is counted.'
refuses "overhead: 1 places of rule 'word', more than 0" overhead/a.cpp '// The caller is told the size.'
refuses "overhead: 1 places of rule 'long', more than 0" overhead/a.cpp "// $(seq -s ' ' 29)"
tree overhead/a.cpp 'int a;'
echo 'int b;' >overhead/b.cpp
git add overhead/b.cpp
! script/check >out 2>&1 && grep -q "overhead: 2 places of rule 'purpose', more than 1" out || { echo "purpose: $(cat out)" >&2; failed=1; }
accepts overhead/a.cpp '// The reader counts the events that it reads.'
accepts overhead/a.cpp '// The rows of a table are not sentences:' '//' "// | $(seq -s ' ' 29) |"
accepts overhead/a.cpp '// A code sample has none either:' '//' "//     $(seq -s ' ' 29)"
exit $failed
