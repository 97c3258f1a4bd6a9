# cmtwatch explain of programs whose malloc is not glibc's, although one of them called a function of glibc's malloc.

. "$SOURCE/tests/cmtwatch/common.sh"

[ "$(uname -m)" = x86_64 ] || { echo "skipped: explain reads x86-64 only"; exit 77; }
cat >other.c <<'END'
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char** words) {
  if (count < 2) return 1;
  static char* volatile blocks[40000];
  for (int i = 0; i < 40000; i++) memset(blocks[i] = malloc(500), 1, 500);
  if (words[1][0] == 't') malloc_trim(0);
  if (words[1][0] == 'i') malloc_info(0, fopen("/dev/null", "w"));
  if (words[1][0] == 'm' && mallinfo2().arena != 0) return 1;
  if (puts("ready") > 0 && fflush(stdout) == 0) pause();
}
END
cc -O0 -o other other.c 2>err || { echo "skipped: no C compiler, or a C library without mallinfo2"; exit 77; }
begin() {  # begin COMMAND...: `pid` is its number
  rm -f said
  "$@" >said 2>begin.err &
  pid=$!
  until_true 'grep -q ready said || ! kill -0 $pid'
}
end() { kill $pid; wait $pid 2>/dev/null || true; }
anonymous() { awk '$1 == "Anonymous:" { kib += $2 } END { printf "%d\n", kib * 1024 }' "/proc/$pid/smaps"; }

begin ./other none
may_read $pid || { echo "skipped: processes may not be read here"; end; exit 77; }
end
for library in libtcmalloc_minimal.so.4 libjemalloc.so.2 libmimalloc.so.2 libtbbmalloc_proxy.so.2; do
  if LD_PRELOAD=$library cat /dev/null 2>&1 | grep -q 'cannot be preloaded'; then
    echo "not tested: $library is not installed"
    continue
  fi
  for function in none trim info mallinfo2; do
    begin env LD_PRELOAD=$library ./other $function
    status_of cmtwatch explain --json $pid
    jq -e '.processes[0] | .malloc == null and .doubts == [] and ([.parts[].bytes] | add) == .resident_bytes and
      ([.parts[] | select(.part == "anonymous" or .part == "owned").bytes] | add) >= 20000000' out >/dev/null ||
      complain "$library, $function: exit $status, $(cat out err)"
    status_of cmtwatch explain $pid
    tr -s ' \n' ' ' <out | grep -q "Its malloc is that of ${library%%.*}[^ ]*, and glibc's has no memory: " ||
      complain "$library, $function: exit $status, $(cat out err)"
    end
  done

  # --trim calls nothing of glibc's, so that the next look is right, and --call has answers.
  case $library in libtcmalloc* | libjemalloc*) name=${library#lib} name=${name%%[._]*} ;; *) continue ;; esac
  begin env LD_PRELOAD=$library ./other none
  before=$(anonymous)
  status_of cmtwatch explain --trim --json $pid
  jq -e '.processes[0] | .trim == null and .malloc == null and
    (.advice | any(startswith("malloc_trim(0) was not called: ")))' out >/dev/null && [ "$(anonymous)" = "$before" ] ||
    complain "$library --trim: exit $status, $before before, $(anonymous) after, $(cat out err)"
  status_of cmtwatch explain --call --json $pid
  if grep -qE 'ptrace_scope|CAP_SYS_PTRACE|not permitted' err; then end; continue; fi
  jq -e --arg name "$name" '.processes[0] | .malloc == null and (.allocator | .allocator == $name and
    (.figures[0].bytes | . >= 20000000 and . < 25000000))' out >/dev/null ||
    complain "$library --call: exit $status, $(cat out err)"
  end
done
exit $failed
