# cmtwatch explain walks glibc's heap. Its figures are those of the program's own mallinfo2, to the byte. The look
# changes nothing in the program.

. "$SOURCE/tests/cmtwatch/common.sh"

[ "$(uname -m)" = x86_64 ] || { echo "skipped: explain reads x86-64 only"; exit 77; }
command -v cc >/dev/null || { echo "skipped: no C compiler"; exit 77; }
cc -O1 -pthread -o explain_cases "$SOURCE/bench/programs/explain_cases.c" 2>err ||
  { echo "skipped: the C compiler does not work, or the C library has no mallinfo2"; exit 77; }

# begin CASE: starts a case of a few MB; `pid` is its number, and `said` the file of its answers.
begin() {
  said=$1.said
  rm -f "$said"
  ./explain_cases "$1" 3 >"$said" &
  pid=$!
  until_true 'grep -q ready "$said" || ! kill -0 $pid'
  kill -0 $pid 2>/dev/null || { echo "explain_cases $1 has ended" >&2; exit 1; }
  until_true '[ "$(cat /proc/$pid/task/*/stat | grep -cv "^[0-9]* (.*) S ")" = 0 ]'
}
end() { kill $pid; wait $pid 2>/dev/null || true; }

# sum FIELD: a figure of all mappings, in bytes, by another program.
sum() { awk -v field="$1:" '$1 == field { kib += $2 } END { printf "%d\n", kib * 1024 }' "/proc/$pid/smaps"; }
faults() { sed 's/.*) //' "/proc/$pid/stat" | cut -d ' ' -f 8,10; }
figure() { jq -r "$1" look.json; }
info() { sed -n "s/.*\b$1=\([0-9]*\).*/\1/p" "$said"; }
equal() { [ "$2" = "$3" ] || complain "$case: $1: $2, not $3: $(jq -c .malloc look.json)"; }  # equal WHAT OURS THEIRS

# Thread arenas that end in a large top. Fastbins, and survivors on each page. A heap that goes on in mappings without a
# header, also from its first block on. Blocks with mappings of their own, with gaps before them, and split by madvise.
for case in emptied trees blocked_sbrk no_sbrk aligned advised; do
  begin $case
  may_read $pid || { echo "skipped: processes may not be read here"; end; exit 77; }
  faults_before=$(faults) resident_before=$(sum Rss)
  status_of cmtwatch explain --json $pid
  [ "$status" = 0 ] && [ ! -s err ] || complain "$case: exit $status, $(cat err)"
  jq -e '.schema == "cmt.explain/1" and (.processes | length) == 1' out >/dev/null || complain "$case: $(cat out)"
  jq '.processes[0]' out >look.json
  equal "page faults" "$(faults)" "$faults_before"
  equal "resident set after the look" "$(sum Rss)" "$resident_before"
  equal resident_bytes "$(figure .resident_bytes)" "$resident_before"
  equal "parts" "$(figure '[.parts[].bytes] | add')" "$resident_before"
  kill -USR1 $pid
  until_true 'grep -q keepcost "$said"'
  equal uordblks "$(figure '.malloc | .system_bytes - .free_bytes')" "$(info uordblks)"
  equal fordblks "$(figure .malloc.free_bytes)" "$(info fordblks)"
  equal hblks "$(figure .malloc.mapped_blocks)" "$(info hblks)"
  equal hblkhd "$(figure .malloc.mapped_bytes)" "$(info hblkhd)"
  jq -e --argjson pid $pid '.pid == $pid and .program == "explain_cases" and (.malloc | .library == "glibc" and
    .is_exact and .resyncs == 0 and .live_bytes <= .system_bytes and .live_blocks > 0)' look.json >/dev/null ||
    complain "$case: $(cat look.json)"

  # malloc_trim gives back what was predicted. Its own code may be read from its file meanwhile: only anonymous memory.
  anonymous_before=$(sum Anonymous)
  kill -USR2 $pid
  until_true 'grep -q trimmed "$said"'
  off=$(($(figure .malloc.trim_bytes) - anonymous_before + $(sum Anonymous)))
  [ ${off#-} -le 102400 ] || complain "$case: trim gave $((anonymous_before - $(sum Anonymous))): $(cat look.json)"
  end
done

# The words name the process, and say that a heap of glibc's was read.
begin trees
status_of cmtwatch explain $pid
[ "$status" = 0 ] && [ ! -s err ] && grep -q "$pid" out && grep -q glibc out || complain "text: exit $status, $(cat out err)"
cmtwatch explain --watch=60s $pid >out 2>err &
watch=$!
until_true 'grep -q "^ *0" out || ! kill -0 $watch'
kill -INT $watch
wait $watch && [ "$(wc -l <out)" = 2 ] && [ ! -s err ] || complain "--watch, Ctrl-C: $?, $(cat out err)"
end
status_of cmtwatch explain --watch $pid
[ "$status" = 1 ] && [ "$(cat err)" = "cmtwatch explain: there is no process $pid" ] || complain "an ended process: exit $status, $(cat err)"

# One of several processes has ended: the others are explained.
sleep 100 &
status_of cmtwatch explain --brief $! $pid
kill $!
[ "$status" = 1 ] && grep -q "^pid=$! " out && [ "$(cat err)" = "cmtwatch explain: there is no process $pid" ] ||
  complain "one of two has ended: exit $status, $(cat out err)"

# Static data that its program has written to is not memory of an unknown owner. A stopped process has the same parts.
begin static_data
for stop in "" --stop; do
  status_of cmtwatch explain --json $stop $pid
  jq -e '.processes[0] | ([.parts[].bytes] | add) == .resident_bytes and (.parts |
    any(.part == "written_files" and .bytes >= 12582912) and all(.part != "anonymous" or .bytes < 1000000))' out >/dev/null ||
    complain "static data $stop: exit $status, $(cat out err)"
done
end

# The mapped files by name, as smaps has them. Their bytes without the copies are the part of files.
if command -v python3 >/dev/null; then
  head -c 9000000 /dev/zero >copied.data
  head -c 8000000 /dev/zero >both.data
  head -c 6291456 /dev/zero >again.data
  cat >mapper.py <<'CODE'
import mmap, os, sys
copied = mmap.mmap(os.open("copied.data", os.O_RDONLY), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
both = mmap.mmap(os.open("both.data", os.O_RDWR), 0)
for at in range(0, len(copied), 4096): copied[at]
for at in range(0, 500 * 4096, 4096): copied[at] = 1
for at in range(0, 300 * 4096, 4096): both[at] = 1
copied.madvise(mmap.MADV_DONTFORK)
again = [mmap.mmap(os.open("again.data", os.O_RDWR), 0) for i in range(3)]
for each in again:
    each.madvise(mmap.MADV_DONTFORK)
    for at in range(0, len(each), 4096): each[at] = 1
if os.fork() == 0: sum(both[at] for at in range(0, len(both), 4096)); print("ready", flush=True); sys.stdin.read(); os._exit(0)
for at in range(0, len(both), 4096): both[at]
print("ready", flush=True)
sys.stdin.read()
CODE
  mkfifo hold
  python3 mapper.py <hold >mapper.said &
  pid=$!
  exec 9>hold
  until_true '[ "$(grep -c ready mapper.said)" = 2 ] || ! kill -0 $pid'
  of_file() {  # of_file NAME FIELD: by another program
    awk -v name="/$1$" -v field="$2" '$1 ~ /^[0-9a-f]+-[0-9a-f]+$/ { is = $0 ~ name }
      is && $1 ~ "^(" field "):$" { kib += $2 } END { printf "%d\n", kib * 1024 }' "/proc/$pid/smaps"
  }
  status_of cmtwatch explain --json $pid
  jq '.processes[0]' out >look.json
  for name in copied.data both.data; do
    row="$(jq -r --arg name "/$name" '.files[] | select(.name | endswith($name)) |
      "\(.resident_bytes) \(.copied_bytes) \(.own_bytes) \(.shared_bytes) \(.dirty_bytes)"' look.json)"
    theirs="$(of_file $name Rss) $(of_file $name Anonymous) $(of_file $name 'Private_Clean|Private_Dirty')"
    theirs="$theirs $(of_file $name 'Shared_Clean|Shared_Dirty') $(of_file $name 'Private_Dirty|Shared_Dirty')"
    [ "$row" = "$theirs" ] || complain "mapped files: $name: $row, not $theirs"
  done
  jq -e '([.files[] | select(.part == "files") | .resident_bytes - .copied_bytes] | add) ==
    ([.parts[] | select(.part == "files") | .bytes] | add) and ([.parts[].bytes] | add) == .resident_bytes and
    (.files | any(.copied_bytes == 2048000) and any(.shared_bytes > 7900000))' look.json >/dev/null ||
    complain "mapped files: $(jq -c '.files, .parts' look.json)"
  jq -e '.files[] | select(.name | endswith("/again.data")) | .times_mapped == 3 and .shared_bytes == 3 * 6291456' look.json >/dev/null &&
    [ "$(jq '[.files[] | select(.times_mapped > 1)] | length' look.json)" = 1 ] || complain "a file that is mapped again: $(jq -c .files look.json)"
  status_of cmtwatch explain --bytes $pid
  grep -q '/again.data: this process itself maps it 3 times, .* by Pss is 6,\?2[0-9,]*$' out || complain "a file that is mapped again: $(cat out)"
  grep -q '/copied.data  *90[0-9]*  *2,\?048,\?000  *' out || complain "mapped files as text: $(cat out err)"
  status_of cmtwatch explain --plot=files.html $pid
  tr -d '\n' <files.html | grep -q 'both.data</td><td>7.63 MiB</td><td>0 B</td><td>7.63 MiB' || complain "mapped files on the page"
  exec 9>&-
  wait $pid || true
fi

# A look at a forked process leaves the pages shared that it has in common with its parent.
cat >forked.c <<'CODE'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) {
  for (int i = 0; i < 20000; i++) memset(malloc(1000), 1, 1000);
  if (fork() == 0) {
    printf("%d\n", getpid());
    fflush(stdout);
  }
  pause();
}
CODE
cc -O0 -o forked forked.c
./forked >forked.said &
until_true '[ -s forked.said ]'
pid=$(cat forked.said)
shared=$(sum Shared_Dirty)
status_of cmtwatch explain --json $pid
jq -e '.processes[0].malloc | .is_exact and .live_bytes > 20000000' out >/dev/null || complain "forked: exit $status, $(cat out err)"
now=$(sum Shared_Dirty)
[ "$now" -ge $((shared - 200000)) ] || complain "a look at a forked process copied pages: $shared bytes were shared, $now are"
kill $pid $! || true

# C++ types of the blocks that keep pages, also of a program without symbols. Huge pages of which one page was written to.
cat >typed.cpp <<'CODE'
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>
namespace app {
struct Session {
  virtual ~Session() = default;
  char text[90]{};
};
}
int main() {
  std::vector<char*> rest;
  for (int i = 0; i < 20000; ++i) {
    if (i % 40 == 7) new app::Session;
    else rest.push_back(new char[200]());
  }
  for (char* each : rest) delete[] each;
  const uintptr_t huge = 2 << 20;
  char* memory = static_cast<char*>(mmap(nullptr, 5 * huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  memory += huge - reinterpret_cast<uintptr_t>(memory) % huge;
  madvise(memory, 4 * huge, MADV_HUGEPAGE);
  for (int i = 0; i < 4; ++i) memory[i * huge] = 1;
  if (write(1, "ready\n", 6) == 6) pause();
}
CODE
if c++ -O1 -s -o typed typed.cpp 2>err; then
  ./typed >typed.said &
  pid=$!
  until_true 'grep -q ready typed.said || ! kill -0 $pid'
  status_of cmtwatch explain --json --huge-pages $pid
  jq -e '.processes[0] | .huge_zero_bytes as $zeros | (.malloc.keepers_by_type | length == 1 and (.[0] | .type ==
    "app::Session" and .blocks == 500 and .live_bytes == 500 * 112 and .kept_bytes > 100000)) and
    (.malloc.largest_block_bytes | . > 262144 and . < 270000) and
    ($zeros == null or $zeros == (.huge_page_bytes / 2097152 * 511 * 4096))' out >/dev/null ||
    complain "types and huge pages: exit $status, $(cat out err)"
  status_of cmtwatch explain $pid
  tr -s ' \n' ' ' <out | grep -qE ' live blocks with [0-9.]+ KiB \([0-9.]+ KiB of these in one block\), .* free\.' ||
    complain "one large block: $(cat out)"
  tr -s ' \n' ' ' <out | grep -q 'By C++ type: app::Session: 500 blocks keep' || complain "types: exit $status, $(cat out err)"
  end
fi

# A process whose first thread has ended goes on in the others. A program that is linked statically.
cat >goes_on.c <<'CODE'
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static void* wait_for_ever(void* none) { for (;;) pause(); return none; }
int main(int count, char** words) {
  pthread_t thread;
  for (int i = 0; i < 1000; i++) if (!malloc(1000)) return 1;
  if (count > 1) wait_for_ever(words);
  pthread_create(&thread, NULL, wait_for_ever, NULL);
  pthread_exit(NULL);
}
CODE
cc -O0 -pthread -o goes_on goes_on.c
./goes_on &
pid=$!
until_true 'grep -q "^State:.Z" /proc/$pid/status'
for stop in "" --stop; do
  status_of cmtwatch explain --json $stop $pid
  jq -e '.processes[0] | .program == "goes_on" and (.malloc | .is_exact and .live_bytes > 1000000) and .page_table_bytes > 0' \
    out >/dev/null || complain "the first thread has ended $stop: exit $status, $(cat out err)"
done
status_of cmtwatch explain --trim $pid
[ "$status" = 1 ] && grep -q "^cmtwatch explain: process $pid: its first thread has ended: no function can be called in it$" err ||
  complain "the first thread has ended --trim: exit $status, $(cat out err)"
status_of cmtwatch get $pid
[ "$status" = 1 ] && grep -q "goes on in other threads than its first: only cmtwatch explain finds its memory$" err ||
  complain "the first thread has ended, get: exit $status, $(cat out err)"
end
if cc -O0 -pthread -static -o goes_on_static goes_on.c 2>err; then
  ./goes_on_static wait &
  pid=$!
  until_true 'grep -q "^State:.S" /proc/$pid/status'
  status_of cmtwatch explain --json $pid
  jq -e '.processes[0].malloc | .library == "glibc" and .live_blocks > 1000 and .live_bytes > 1000000' out >/dev/null ||
    complain "a static program: exit $status, $(cat out err)"
  end
fi

# A process that has ended is an error.
status_of cmtwatch explain $pid
[ "$status" = 1 ] && [ ! -s out ] && [ "$(wc -l <err)" = 1 ] && grep -q "there is no process $pid" err ||
  complain "an ended process: exit $status, $(cat out err)"
sh -c 'true & exec sleep 300' &
pid=$!
until_true 'zombie=$(pgrep -P $pid) && grep -q "^State:.Z" /proc/$zombie/status'
status_of cmtwatch explain $zombie
[ "$status" = 1 ] && grep -qx "cmtwatch explain: $zombie (.*) has ended, and waits for its parent: its memory is gone" err ||
  complain "a zombie: exit $status, $(cat out err)"
end
exit $failed
