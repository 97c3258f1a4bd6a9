"""Decodes the origins of live blocks at a keyframe, and checks them against the events before. See decoder.py."""
from .layout import MASK, ORIGINS, unzigzag
from .streams import ALLOCATES, COUNTS, RELEASES


def is_power_of_2(number):
    return number > 0 and number & (number - 1) == 0


# ## Origins

MALLOC, CALLOC, ALIGNED_ALLOC, TOUCH, RESIDENT, LAST_KNOWN, DISCARD = 0, 2, 5, 28, 29, 32, 38


def origins(block, table, stacks):
    """(time, origins by tag). An origin has kind, thread, count, size, alignment, time, usable size, stack's node, runs."""
    cursor, tags = block.raw[ORIGINS], sorted(table)
    # "0, or the time + 1 of the last event before the keyframe that has one"
    before = cursor.varint() - 1
    # "kind << 2, plus 2 if it counts, plus 1 if the alignment is not 0."
    calls = []
    for _ in tags:
        at, call = cursor.at, cursor.varint("a kind", 255)
        if call >> 2 <= LAST_KNOWN and (call >> 2 not in ALLOCATES or call >> 2 in RELEASES):
            cursor.fail("a kind that makes no block", at)
        if call >> 2 <= LAST_KNOWN and (call >> 2 in COUNTS) != (call & 2 != 0):
            cursor.fail("a kind with another count than its own", at)
        calls.append(call)
    threads = [cursor.varint("a thread", 2**32 - 1) for _ in tags]
    counted = []
    for tag, call in zip(tags, calls):
        at, (count, size) = cursor.at, (cursor.varint(), cursor.varint()) if call & 2 else (1, table[tag][1])
        # "Their bytes(event) is the size in the table"
        if min(count * size, MASK) != table[tag][1]:
            cursor.fail("a count and a size that are not the block's", at)
        counted.append((count, size))
    alignments = [cursor.varint() if call & 1 else 0 for call in calls]
    times, time = [], 0
    for _ in tags:
        # "0: unknown; any other v is the time of the block before that has one (0 at first) + unzigzag(v - 1)"
        value = cursor.varint()
        time = time + unzigzag(value - 1) & MASK if value else time
        times.append(time if value else None)
    usable = []
    for tag in tags:
        value = cursor.varint()
        usable.append(table[tag][1] + unzigzag(value - 1) & MASK if value else None)
    nodes = []
    for _ in tags:
        at, number = cursor.at, cursor.varint()
        if number >= len(stacks):
            cursor.fail("a stack that is not defined", at)
        nodes.append(stacks[number])
    runs = touched(cursor, tags, table)
    cursor.end()
    all_made = {}
    for i, tag in enumerate(tags):
        kind, alignment = calls[i] >> 2, alignments[i]
        # "A block of an unknown kind becomes a block of calloc if it counts, else of aligned_alloc if it has an
        # alignment, else of malloc."
        if kind > LAST_KNOWN:
            kind = CALLOC if calls[i] & 2 else ALIGNED_ALLOC if alignment else MALLOC
            alignment = alignment if kind == ALIGNED_ALLOC else 0
        all_made[tag] = (kind, threads[i], *counted[i], alignment, times[i], usable[i], nodes[i], runs.get(tag, []))
    return before if before >= 0 else None, all_made


def touched(cursor, tags, table):
    """Runs of pages by tag: (begin, end, kind, page size)."""
    by_tag, place = {}, 0
    for _ in range(cursor.varint("the number of touched blocks", len(tags))):
        # "the block's place among the n less that of the one before (0 at first), so above 0"
        at, step = cursor.at, cursor.varint()
        place += step
        if step == 0 or place > len(tags):
            cursor.fail("pages of no block", at)
        tag, end, runs = tags[place - 1], 0, []
        for _ in range(cursor.varint()):
            at = cursor.at
            kind, gap, length, page_size = (cursor.varint("a kind", 63), *(cursor.varint() for _ in range(3)))
            # "From the end of the run before (0 at first) to the run's begin, and from there to its end, which is not
            # beyond the block's end. The length is above 0"
            begin, end = end + gap, end + gap + length
            if kind not in (TOUCH, RESIDENT) or not is_power_of_2(page_size) or not length or end > table[tag][1]:
                cursor.fail("pages that the block does not have", at)
            runs.append((begin, end, kind, page_size))
        by_tag[tag] = runs
    return by_tag


class Made:
    """Follows the events, and lists the origins that result from them."""

    def __init__(self):
        self.time, self.blocks, self.addresses = None, {}, {}

    def add(self, event):
        self.time = event.time if event.time is not None else self.time
        if event.kind in (TOUCH, RESIDENT):
            if event.old_tag in self.blocks:
                self.add_run(event)
            return
        if event.kind == DISCARD:
            if event.old_tag in self.blocks:
                self.drop(event.old_tag, event.size, event.size + event.count)
            return
        if event.ends():
            self.blocks.pop(event.old_tag, None)
        if event.tag:
            # "a block that a realloc has made has the kind malloc"
            kind, count, size = (event.kind, event.count, event.size) if event.kind not in RELEASES else (
                MALLOC, 1, event.bytes())
            count = count if kind in COUNTS else 1
            self.addresses[event.tag] = event.address
            self.blocks[event.tag] = (kind, event.thread, count, size, event.alignment, event.time, event.usable,
                                      event.stack, [])

    def add_run(self, event):
        made, page_size, begin = self.blocks[event.old_tag], event.alignment, event.size
        size = min(made[2] * made[3], MASK)
        if not is_power_of_2(page_size) or begin >= size:
            return
        # "Page i of a run, from 0, has the byte size + i · alignment of the block." "0: all up to the block's end"
        end = begin + event.count * page_size - (self.addresses[event.old_tag] % page_size if begin == 0 else 0)
        end = min(end, size) if event.count else size
        # "If several events name a byte, its run is that of the first event. Consecutive runs of one kind and page size
        # are one run."
        runs, added = made[8], []
        for other_begin, other_end, _, _ in runs:
            if begin < other_begin < end:
                added.append((begin, other_begin, event.kind, page_size))
            if other_begin < end and other_end > begin:
                begin = min(max(begin, other_end), end)
        if begin < end:
            added.append((begin, end, event.kind, page_size))
        for run in added:
            runs.append(run)
            runs.sort()
            at = runs.index(run)
            for i in (at + 1, at):  # with the one after it, then with the one before
                if 0 < i < len(runs) and runs[i - 1][1] == runs[i][0] and runs[i - 1][2:] == runs[i][2:]:
                    runs[i - 1:i + 1] = [(runs[i - 1][0], *runs[i][1:])]

    def drop(self, tag, begin, end):
        """Takes bytes that were given back out of the runs. The rest of a run that is cut has pages of 4,096 bytes."""
        made, runs = self.blocks[tag], []
        size = min(made[2] * made[3], MASK)
        if begin >= size or begin == end:
            return
        end = min(end, size)
        for run_begin, run_end, kind, page_size in made[8]:
            if run_end <= begin or run_begin >= end:
                runs.append((run_begin, run_end, kind, page_size))
                continue
            if run_begin < begin:
                runs.append((run_begin, begin, kind, 4096))
            if run_end > end:
                runs.append((end, run_end, kind, 4096))
        made[8][:] = runs

    def state(self):
        return self.time, self.blocks
