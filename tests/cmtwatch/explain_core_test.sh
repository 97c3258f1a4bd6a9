# cmtwatch explain --core reads a core file as it reads the process, and never trusts what is in it.

. "$SOURCE/tests/cmtwatch/common.sh"
command -v cc >/dev/null || { echo "skipped: no C compiler"; exit 77; }
[ "$(uname -m)" = x86_64 ] || { echo "skipped: core files of x86-64 only"; exit 77; }
cat >heap.c <<'END'
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) {
  static void* blocks[4000];
  for (int i = 0; i < 4000; i++) memset(blocks[i] = malloc(100 + i % 700), 1, 100);
  memset(blocks[0] = malloc(500000), 1, 500000);
  for (int i = 1; i < 4000; i++) if (i % 9) free(blocks[i]);
  write(1, "ready\n", 6);
  pause();
}
END
cc -O1 -w -o heap heap.c || { echo "skipped: the C compiler does not work"; exit 77; }
mkfifo ready
./heap >ready & target=$!
read -r _ <ready
until_true "grep -q '^34 ' /proc/$target/syscall"  # pause
figures='.processes[0].malloc | {live_bytes, live_blocks, free_bytes, system_bytes, mapped_bytes, trim_bytes, thread_cache_bytes, is_exact}'
status_of cmtwatch explain --json $target
if grep -q 'may not be looked at' err; then kill $target; echo "skipped: $(cat err)"; exit 77; fi
jq -c "$figures" out >live
/usr/bin/python3 "$SOURCE/tests/cmtwatch/write_core.py" $target core || complain "no core"
/usr/bin/python3 "$SOURCE/tests/cmtwatch/write_core.py" $target huge.core '/anon_hugepage (deleted)' || complain "no core"
/usr/bin/python3 "$SOURCE/tests/cmtwatch/write_core.py" $target shared.core '/memfd:pool (deleted)' || complain "no core"
kill $target
# As if they were shared memory, which a core file does not say but by its name.
status_of cmtwatch explain --json --core=shared.core
jq -e '.processes[0].parts | map({(.part): .bytes}) | add | .shared >= 500000 and (.written_files // 0) < 500000' out >/dev/null ||
  complain "shared memory: $status $(cat err out)"
# As if its mappings without a name were reserved huge pages, which the kernel names as a file.
status_of cmtwatch explain --json --core=huge.core
[ "$status" = 0 ] && [ "$(jq -c "$figures" out)" = "$(cat live)" ] || complain "huge pages: $status $(cat err) $(jq -c "$figures" out), not $(cat live)"
jq -e '.processes[0] | .hugetlb_bytes >= 500000 and .hugetlb_bytes < .resident_bytes and
  (.parts | map(.bytes) | add) == .resident_bytes' out >/dev/null || complain "the huge pages' figures: $(cat out)"
status_of cmtwatch explain --core=huge.core
grep -q 'KiB of it are in reserved huge pages (hugetlb), which the kernel.s RSS does not count' out || complain "huge pages: $(cat out)"
status_of cmtwatch explain --json --core=core
[ "$status" = 0 ] && [ "$(jq -c "$figures" out)" = "$(cat live)" ] || complain "a core: $status $(cat err) $(jq -c "$figures" out), not $(cat live)"
jq -e '.processes[0] | .pid == null and .malloc.is_exact and .malloc.mapped_blocks == 1 and .malloc.live_blocks >= 445 and
  (.parts | map(.bytes) | add) == .resident_bytes' out >/dev/null || complain "the core's figures: $(cat out)"
status_of cmtwatch explain --brief --core=core
grep -q "^pid=$target resident=" out || complain "the core's pid: $(cat err out)"

# Files that are no cores.
: >empty
head -c 100000 /dev/zero >zeros
head -c 5000 core >head
/usr/bin/python3 -c 'import struct  # the first two segments of memory get one address
core = bytearray(open("core", "rb").read())
heads = [64 + 56 * i for i in range(struct.unpack_from("<H", core, 56)[0])]
first, second = [at for at in heads if struct.unpack_from("<I", core, at)[0] == 1][:2]
core[second + 16:second + 24] = core[first + 16:first + 24]
open("overlaps", "wb").write(core)'
for file in empty zeros head overlaps /bin/sh nowhere .; do
  status_of cmtwatch explain --core="$file"
  [ "$status" = 1 ] && [ ! -s out ] && [ "$(wc -l <err)" = 1 ] && grep -q "$file" err || complain "$file: $status $(cat out err)"
done

# Damaged ones: an answer or an error, at once, and never a crash. The damage is in the head, and in the heap.
cat >mutants.py <<'END'
import random
import struct
import subprocess
import sys
whole = open('core', 'rb').read()
count = struct.unpack_from('<H', whole, 56)[0]
areas = [(0, 64 + 56 * count)]
for i in range(count):
    kind, flags, offset, address, _, bytes_, _, _ = struct.unpack_from('<IIQQQQQQ', whole, 64 + 56 * i)
    if kind == 4 or (kind == 1 and flags == 6 and bytes_ < 16 << 20): areas.append((offset, bytes_))
for seed in range(int(sys.argv[1])):
    rand = random.Random(seed)
    core = bytearray(whole)
    for _ in range(rand.choice([1, 3, 20, 300])):
        begin, length = rand.choice(areas if rand.random() < .9 else areas[:1])
        at = begin + rand.randrange(length) // 8 * 8
        word = rand.choice([0, 1, 2**64 - 1, 2**47, rand.getrandbits(64), rand.getrandbits(12), struct.unpack_from('<Q', core, begin + rand.randrange(max(1, length - 8)) // 8 * 8)[0]])
        if at + 8 <= len(core): struct.pack_into('<Q', core, at, word)
    open('mutant', 'wb').write(core)
    done = subprocess.run(['cmtwatch', 'explain', '-v' if seed % 2 else '--json', '--core=mutant'], capture_output=True, timeout=60)
    if done.returncode not in (0, 1) or (done.returncode == 1) != (done.stdout == b''):
        print(seed, done.returncode, done.stderr.decode()[-300:]); sys.exit(1)
END
/usr/bin/python3 mutants.py $([ "${CMT_DAILY:-}" ] && echo 3000 || echo 40) >mutants.out 2>&1 || complain "a damaged core: $(tail -n 3 mutants.out)"
exit $failed
