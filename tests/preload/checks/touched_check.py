"""touched_check.py [--bounded] TRACE...: whether a text trace names the pages that touched.c has touched.

No page that was not written may be a touched one, and each page that was written is a touched or a resident one. A block
that the C library has mapped anew has no resident page but the one of its header, unless a realloc has returned it, or the
time for asking was bounded. Such a block begins behind a header at a page's begin; so may one of a heap, but there are others
in the same 64 MiB, which begin elsewhere. A page that was only read may be a touched one unless calloc has zeroed the block where it is: the
kernel is asked about other blocks by mincore alone. Some kernels have no shared page of zeros: there a page that was only read takes
memory too, and may be recorded as a touched one of any block.
"""
import mmap
import re
import sys

PAGE, MAPPED, HEADER, HEAP = 4096, 128 << 10, 16, 64 << 20
CALL = re.compile(r"^([a-z_ ]+)\((.*?)\)(?: = ([0-9a-f]+)<(\d+)>)?(?: .*)?$")
GIVEN = re.compile(r"^([0-9a-f]+)<(\d+)>(?:, )?(.*)$")


def written(pages, size):
    how = size % 10
    if how == 1:
        return set(range(pages // 2))
    if how == 2:
        return set(range(pages))
    if how == 3:
        return set(range(0, pages, 2))
    if how == 5:
        return {pages - 1}
    if how == 6:
        return set(range(0, pages, 5))
    return {0} if how > 6 else set()


def read_pages_take_memory():
    """Whether the kernel gives an anonymous page that is only read a frame of its own: smaps does not count the page of zeros."""
    pages = 64
    memory = mmap.mmap(-1, pages * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    sum(memory[page * PAGE] for page in range(pages))
    def resident():
        with open("/proc/self/smaps_rollup", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Rss:"))
    with_pages = resident()
    memory.close()
    return with_pages - resident() >= pages * PAGE // 1024 // 2


ONLY_READ = (4, 6)
# Several times: what else the interpreter gets and gives back in between is counted too.
HAS_NO_ZEROS = any(read_pages_take_memory() for _ in range(20))


class Block:
    def __init__(self, address, size, is_zeroed, old=None):
        self.address, self.size = address, size
        self.pages = (address % PAGE + size + PAGE - 1) // PAGE
        self.own = written(self.pages, size)
        self.written = self.own | ({page for page in old.written if page < min(old.pages, self.pages) - 1} if old else set())
        self.is_zeroed = is_zeroed or (old is not None and old.is_zeroed and old.address == address)
        self.ever_read = set(range(self.pages)) if size % 10 in ONLY_READ else set()
        self.ever_read |= {page for page in old.ever_read if page < self.pages} if old else set()
        self.read = self.ever_read if HAS_NO_ZEROS or not self.is_zeroed else set()
        self.touched, self.resident = set(), set()
        self.is_fresh = size >= MAPPED and address % PAGE == HEADER and not old

    def add_pages(self, kind, unit, count, offset):
        first = (self.address + offset) // unit
        last = (self.address + self.size - 1) // unit if count == 0 else first + count - 1
        begin = self.address // PAGE
        pages = {page - begin for page in range(first * unit // PAGE, (last + 1) * unit // PAGE)}
        pages &= set(range(self.pages))
        known = self.touched | self.resident
        (self.touched if kind == "touch" else self.resident).update(pages)
        return bool(pages & known) or not pages


def check(path, is_bounded):
    blocks, ended, faults, sums, least = {}, [], [], [0, 0, 0], None
    for line in open(path, encoding="utf-8"):
        if line.startswith("#cmt touched_min="):
            least = int(line.split("=")[1])
        if line.startswith("#") or not (call := CALL.match(line)):
            continue
        name, arguments, address, tag = call.groups()
        given = GIVEN.match(arguments)
        if name in ("touch", "resident"):
            unit, count, offset = map(int, given[3].split(", "))
            block = blocks.get(given[2])
            if block is None:
                faults.append(f"{path}: a page of no live block: {line.strip()}")
            elif block.add_pages(name, unit, count, offset):
                faults.append(f"{path}: named twice, or none: {line.strip()}")
            continue
        old = None
        if given and (name == "free" or (name == "realloc" and tag)):
            old = blocks.pop(given[2], None)
            if old:
                ended.append(old)
        if tag:
            numbers = [int(number) for number in (given[3] if given else arguments).split(", ")]
            size = numbers[0] * (numbers[1] if name == "calloc" else 1)
            if size >= least:
                blocks[tag] = Block(int(address, 16), size, name == "calloc", old)
    ended += blocks.values()
    heaps = {block.address // HEAP for block in ended if block.address % PAGE != HEADER}
    for block in ended:
        wrong, missing = block.touched - block.written - block.read, block.written - block.touched - block.resident
        where = f"{path}: a block of {block.size} bytes at {block.address:x}"
        if wrong:
            faults.append(f"{where}: not written, but touched: {sorted(wrong)[:9]} of {block.pages}")
        if missing:
            faults.append(f"{where}: written, and not named: {sorted(missing)[:9]} of {block.pages}")
        if block.is_fresh and block.address // HEAP not in heaps and not is_bounded and not block.resident <= {0}:
            faults.append(f"{where}: said to be unknown: {sorted(block.resident)[:9]} of {block.pages}")
        sums = [a + b for a, b in zip(sums, (1, len(block.touched), len(block.resident)))]
    print(*faults[:20], sep="\n", end="\n" if faults else "")
    print(f"{sums[0]} blocks, {sums[1]} pages touched, {sums[2]} resident, {len(faults)} wrong")
    return not faults and sums[0] > 0


paths = [word for word in sys.argv[1:] if word != "--bounded"]
sys.exit(not all([check(path, "--bounded" in sys.argv) for path in paths]))
