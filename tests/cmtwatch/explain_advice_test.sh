# The advice of cmtwatch explain: how to learn who allocates, and the zeros in huge pages.

. "$SOURCE/tests/cmtwatch/common.sh"

[ "$(uname -m)" = x86_64 ] || { echo "skipped: explain reads x86-64 only"; exit 77; }
cat >live.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int count, char** words) {
  const size_t huge = 2 << 20;
  char* memory = NULL;
  if (count == 1) {
    for (int i = 0; i < 4000; i++) memset(malloc(3000), 1, 3000);
  } else if (posix_memalign((void**)&memory, huge, 16 * huge) == 0) {
    madvise(memory, 16 * huge, words[1][0] == 'h' ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    for (int i = 0; i < 16; i++) memory[i * huge] = 1;
    char* lazy = mmap(NULL, 5 * huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(lazy, 1, 5 * huge);
    madvise(lazy, 5 * huge, MADV_FREE);
  }
  if (puts("ready") > 0 && fflush(stdout) == 0) pause();
}
END
cc -O0 -o live live.c 2>err || { echo "skipped: no C compiler"; exit 77; }
begin() {  # begin COMMAND...: `pid` is its number
  rm -f said
  "$@" >said &
  pid=$!
  until_true 'grep -q ready said || ! kill -0 $pid'
}
end() { kill $pid; wait $pid 2>/dev/null || true; }
sum() { awk -v field="$1:" '$1 == field { kib += $2 } END { printf "%d\n", kib * 1024 }' "/proc/$pid/smaps"; }
look() { status_of cmtwatch explain "$@"; tr -s ' \n' ' ' <out >words; }
words() { grep -q -e "$1" words; }

# A recording from the start has the blocks that live, an attached one only later blocks. A core file has no process.
begin ./live
may_read $pid || { echo "skipped: processes may not be read here"; end; exit 77; }
look $pid
words 'cmttrace --stacks -o app.cmt -- COMMAND, then cmtreport app.cmt\.' && words '4,00[0-9] blocks' &&
  words "cmttrace --attach=$pid -o app.cmt names only what is allocated from then on" || complain "live: exit $status, $(cat out err)"
/usr/bin/python3 "$SOURCE/tests/cmtwatch/write_core.py" $pid core || complain "no core"
end
look --core=core
words 'cmttrace --stacks -o app.cmt -- COMMAND' && ! words 'attach' || complain "a core: exit $status, $(cat out err)"
if cc -O0 -static -o live_static live.c 2>err; then
  begin ./live_static
  look $pid
  words 'link the program dynamically, and record it from its start' && ! words 'attach' && ! words 'cmttrace -' ||
    complain "a static program: exit $status, $(cat out err)"
  end
fi

# Zeros in huge pages, and memory that was given back with MADV_FREE.
begin ./live huge
if [ "$(sum AnonHugePages)" -ge 33554432 ]; then
  resident=$(sum Rss)
  look $pid
  words 'Huge pages may make it large: --huge-pages counts' || complain "huge pages: exit $status, $(cat out err)"
  look --huge-pages $pid
  if ! words 'their zeros were not counted'; then
    words '31\.9 MiB in transparent huge pages hold only zeros' && words 'MADV_NOHUGEPAGE' && ! words 'No setting of malloc' ||
      complain "--huge-pages: exit $status, $(cat out err)"
    end
    begin ./live small
    saved=$((resident - $(sum Rss) - 16 * 511 * 4096))
    [ ${saved#-} -le 400000 ] || complain "huge pages: $saved more was saved than they have zeros"
  fi
fi
status_of cmtwatch explain --json $pid
# The kernel may take these pages, and counts some of them late.
jq -e --argjson lazy "$(sum LazyFree)" '.processes[0] | (.lazy_free_bytes - $lazy | fabs) < 500000 and
  ($lazy < 9000000 or (.advice | any(test("MADV_FREE. The kernel takes them"))))' out >/dev/null ||
  complain "MADV_FREE: exit $status, $(cat out err)"
end
exit $failed
