"""Kinds, and the streams of a block: core, addresses, live blocks, times, usable sizes. See decoder.py."""
from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

from .layout import ADDRESS_STREAM, CORE, MASK, TIME_STREAM, USABLE_STREAM, unzigzag

# ## Kinds

KINDS = ("malloc free calloc realloc reallocarray aligned_alloc posix_memalign memalign valloc pvalloc free_sized "
         "free_aligned_sized operator_new operator_new_nothrow operator_new_array operator_new_array_nothrow "
         "operator_delete operator_delete_sized operator_delete_array operator_delete_array_sized thread_start "
         "thread_exit thread_name mark sample").split() + [
             None, None, "unknown_kind", "touch", "resident", "malloc_trim", "mallopt", "mallctl", None, "pool_malloc",
             "pool_free", "sampling_interval", "unsample", "discard"]
ALLOCATES = {0, *range(2, 10), *range(12, 16)}
RELEASES = {1, 3, 4, 10, 11, *range(16, 20), 37}
NAMES = {28, 29, 38}
SIZES = {0, *range(2, 16), 17, 19, 24, 28, 29, 30, 34, 36, 38}
COUNTS = {2, 4, 28, 29, 38}
ALIGNS = {5, 6, 7, 11, 28, 29}
MAY_ALIGN = {*range(12, 20), 34, 35}
LABELS = {22, 23, 31, 32}
TOUCH, RESIDENT, NEXT_RUN = 28, 29, 33
POOL_MALLOC, POOL_FREE = 34, 35
SAMPLING_INTERVAL, UNSAMPLE = 36, 37
THREAD_SWITCH, TAG_SKIP, DESCRIBED, UNKNOWN_KIND = 25, 26, 27, 27
BITS = {1: ALLOCATES, 2: RELEASES, 4: NAMES, 8: SIZES, 16: COUNTS, 32: ALIGNS, 64: MAY_ALIGN, 128: LABELS}


def properties(kind):
    return sum(bit for bit, kinds in BITS.items() if kind in kinds)


def is_known(kind):
    return kind < len(KINDS) and KINDS[kind] is not None


@dataclass
class Event:
    kind: int
    thread: int
    size: int = 0
    count: int = 1
    alignment: int = 0
    tag: int = 0
    old_tag: int = 0
    address: int = 0
    old_address: int = 0
    time: int | None = None
    usable: int | None = None
    label: bytes = b""
    stack: int = 0  # a node
    pool: bytes = b""
    pool_block: int = 0
    stated_kind: int = 0  # as the stream has it, where the kind is not known
    interval: int = 0  # the sampling interval at the event; 0 in a trace of all blocks

    @property
    def name(self):
        return KINDS[self.kind]

    # "bytes(event) is size times count, or 2^64 - 1 if the product overflows."
    def bytes(self):
        return min(self.size * self.count, MASK)

    # "An event ends the block that it was given. There are three exceptions: the block is NULL, the kind only names it,
    # or a realloc was refused. A refused realloc is an event that allocates, returned NULL and asked for more than 0
    # bytes."
    def ends(self):
        return (self.old_tag != 0 and self.kind not in NAMES and
                not (self.kind in ALLOCATES and self.tag == 0 and self.bytes() > 0))

    def refused(self):
        return self.kind in ALLOCATES and self.tag == 0 and self.bytes() > 0


    # "blocks that were allocated | the sum of 1 / p(S, R) over them" "with the interval now"
    def weight(self, interval=None):
        """The number of blocks that the block of this event represents: 1 in a trace of all blocks. The estimate of live
        blocks needs the interval now."""
        interval, size = interval or self.interval, self.bytes()
        if not self.tag or (interval and not size):
            return 0.0
        return 1 / -math.expm1(-size / interval) if interval else 1.0


# ### Unknown kinds


# "A reader replaces an event of an unknown kind by one with the same effect on blocks, and counts it as a repair"
def replaced(event, has):
    event.stated_kind = event.kind
    # "allocates and releases | reallocarray if it counts, else realloc"
    if has("allocates") and has("releases"):
        event.kind = KINDS.index("reallocarray" if has("counts") else "realloc")
    # "allocates | calloc if it counts, else aligned_alloc if the alignment is not 0, else malloc"
    elif has("allocates"):
        event.kind = KINDS.index("calloc" if has("counts") else "aligned_alloc" if event.alignment else "malloc")
    # "releases | free" "does neither | unknown_kind"
    else:
        event.kind = KINDS.index("free") if has("releases") else UNKNOWN_KIND
    # "A size is kept if the new kind has one: without a count it is bytes(event). Other operands and the label are
    # dropped, and so is a block that is only named."
    kind = event.kind
    if kind not in COUNTS:
        event.size, event.count = event.bytes(), 1
    event.size = event.size if kind in SIZES else 0
    event.alignment = event.alignment if kind in ALIGNS else 0
    event.old_tag = event.old_tag if kind in RELEASES else 0
    event.label = b""
    return event


# ## The core stream

# ### Table of forms

DELTA, NULL, WIDE, ALIGNED = 32, 64, 128, 256
PROPERTIES = {"allocates": 1, "releases": 2, "names": 4, "sizes": 8, "counts": 16, "aligns": 32, "may align": 64,
              "labels": 128}


@dataclass(frozen=True)
class Form:
    value: int
    properties: int
    further: int

    # "bits 0 to 4: operation; 32 by delta; 64 NULL; 128 wide; 256 aligned; bit 9: 32 more for the operation"
    @property
    def operation(self):
        return (self.value & 31) + (self.value >> 9 & 1) * 32

    def has(self, name):
        return bool(self.properties & PROPERTIES[name])

    def is_control(self):
        return self.operation in (THREAD_SWITCH, TAG_SKIP)

    def is_valid(self):
        value, kind = self.value, self.operation
        operands = (self.is_control() or self.properties & ~(PROPERTIES["allocates"] | PROPERTIES["may align"]) or
                    self.further or value & ALIGNED)
        # "Forms with by delta are only for kinds that release or name. Forms with NULL are only for kinds that
        # allocate, with aligned only for kinds that may align, with wide only for operations that have an operand. No
        # kind both releases and names."
        return not (value > 1023 or
                    (value & DELTA and not self.has("releases") and not self.has("names")) or
                    (value & NULL and not self.has("allocates")) or
                    (value & ALIGNED and not self.has("may align")) or
                    (value & WIDE and not operands) or (self.has("releases") and self.has("names")) or
                    # "A reader refuses a known kind with other properties than its own, and a next run with other
                    # properties than names"
                    (kind == NEXT_RUN and self.properties != PROPERTIES["names"]) or
                    (is_known(kind) and self.properties != properties(kind)))


def form_of(cursor):
    at, value = cursor.at, cursor.varint()
    form = Form(value, 0, 0)
    if form.operation < DESCRIBED or value > 1023:
        form = Form(value, properties(form.operation), 0)
    else:
        # "only for operations from 27 on: the sum of the kind's bits, at most 255"
        #
        # "only for operations from 27 on: operands beyond those of the properties, at most 16"
        form = Form(value, cursor.varint("a kind's traits", 255),
                    cursor.varint("a kind's number of further operands", 16))
    if not form.is_valid():
        cursor.fail(f"unknown form {value}", at)
    return form


def table_of_forms(cursor, sampled):
    forms = []
    for _ in range(cursor.varint("the number of forms", 128)):
        at = cursor.at
        form = form_of(cursor)
        # "The kinds 36 and 37 occur only in version 2. A reader refuses a table of forms of version 1 that has them."
        if not sampled and form.operation in (SAMPLING_INTERVAL, UNSAMPLE):
            cursor.fail("a kind of sampled traces, in version 1", at)
        length = cursor.varint("a code's length", 7)
        if length == 0:
            cursor.fail("a code of no bits", at)
        forms.append((form, length))
        # "The sum of 2^-length over the forms is at most 1."
        if sum(128 >> length for _, length in forms) > 128:
            cursor.fail("more codes than there is room for", at)
    # "At first, code is 0. For each length from 1 to 7, code is shifted left by one. Then each form of this length, in
    # the table's order, gets code, and code rises by one. An item has a code with its bits reversed"
    codes, code = {}, 0
    for length in range(1, 8):
        code <<= 1
        for form, its_length in forms:
            if its_length == length:
                codes[length, int(f"{code:0{length}b}"[::-1], 2)] = form
                code += 1
    return codes


# ### Items


def core(block, sampled):
    cursor = block.raw[CORE]
    codes = table_of_forms(cursor, sampled)
    # "The state is next tag, named tag and thread, from the block header,"
    next_tag, named_tag, thread = block.next_tag, block.named_tag, block.thread
    # "and a last run of touched pages. The last run has a kind, block, count, alignment and end, at first touch, NULL,
    # 0, 4,096 and 0."
    last = Event(TOUCH, 0, count=0, alignment=4096)
    last_end = 0
    # "A block begins with the last pool 0, the next number 1 and the named number 0."
    pool, next_number, named_number = 0, 1, 0
    events = []
    while len(events) < block.events:
        # "An item begins with a varint whose low bits are a form's code: exactly one form's code fits, or the stream
        # is damaged."
        item = cursor.varint()
        length = next((n for n in range(1, 8) if (n, item & (1 << n) - 1) in codes), None)
        if length is None:
            cursor.fail("a code that no form has")
        form, first = codes[length, item & (1 << length) - 1], item >> length
        kind, has = form.operation, form.has
        # "The bits above the code are the first operand, unless the form is wide or has no operands; then they are 0.
        # All other operands are varints of their own"
        operands = [] if form.value & WIDE else [first]
        if form.value & WIDE and first:
            cursor.fail("a code that no form has")

        def operand():
            return operands.pop() if operands else cursor.varint()

        # "A thread switch has one operand: the thread of the events after it. A tag skip has one: the increase of the
        # next tag."
        if kind == THREAD_SWITCH:
            thread = operand()
            if thread > 2**32 - 1:
                cursor.fail("a thread above its limit")
            continue
        if kind == TAG_SKIP:
            next_tag = next_tag + operand() & MASK
            continue
        event = Event(kind, thread)
        if has("releases") or has("names"):
            # "The block given is, by delta, named tag + unzigzag(operand); else NULL for the operand 0, and next tag
            # - operand for any other. If it is not NULL it becomes the named tag."
            value = operand()
            if form.value & DELTA:
                event.old_tag = named_tag + unzigzag(value) & MASK
            elif value:
                event.old_tag = next_tag - value & MASK
            if event.old_tag:
                named_tag = event.old_tag
        if has("sizes"):
            event.size = operand()
        if has("counts"):
            event.count = operand()
        if has("aligns") or form.value & ALIGNED:
            event.alignment = operand()
        # "The further operands: the block of a pool_free. All others have no meaning for a reader of this version."
        further = [operand() for _ in range(form.further)]
        if has("labels"):
            # "The label's length in bytes (at most 4,096), if it has one; the label's bytes follow."
            size = operand()
            if size > 4096:
                cursor.fail("a label above its limit")
            event.label = cursor.bytes(size)
        if any(operands):
            cursor.fail("a code that no form has")
        if kind in (TOUCH, RESIDENT, NEXT_RUN):
            # "A touch or resident is never given NULL. NULL here means the block of the last run, which must not be
            # NULL; the named tag stays."
            event.old_tag = event.old_tag or last.old_tag
            if event.old_tag == 0:
                cursor.fail("a touch of no block")
            # "A next run is an event whose only operand is the block. Its size operand counts as 0; its kind, count and
            # alignment are those of the last run."
            if kind == NEXT_RUN:
                event.kind = kind = last.kind
                event.count, event.alignment = last.count, last.alignment
            # "The size operand is zigzag(size - end); the end counts as 0 if the block is not that of the last run."
            before = last_end if event.old_tag == last.old_tag else 0
            event.size = unzigzag(event.size) + before & MASK
            # "The event becomes the last run, with the end size + count · alignment (modulo 2^64)."
            last, last_end = event, event.size + event.count * event.alignment & MASK
        if kind in (POOL_MALLOC, POOL_FREE):
            # "The alignment of an aligned form is v: the last pool becomes v mod 2^16, and the next number rises by v >>
            # 16."
            if form.value & ALIGNED:
                pool, next_number = event.alignment & 0xFFFF, next_number + (event.alignment >> 16) & MASK
                event.alignment = 0
            if not 0 < pool <= len(block.pools):
                cursor.fail("a pool that the block does not name")
            # "A pool_malloc makes the block with the next number, which rises by one."
            if kind == POOL_MALLOC:
                event.pool_block, next_number = next_number, next_number + 1 & MASK
            # "The first further operand of a pool_free is v. The block is named number + unzigzag(v >> 1) if v is odd,
            # else next number - (v >> 1). This block becomes the named number."
            else:
                value = further[0] if further else 0
                named_number = (named_number + unzigzag(value >> 1) if value & 1 else next_number - (value >> 1)) & MASK
                event.pool_block = named_number
            # "The numbers of blocks are above 0 and below 2^48."
            if not (0 < event.pool_block < 1 << 48 and next_number <= 1 << 48):
                cursor.fail("a pool's block above its limit")
            event.pool = block.pools[pool - 1]
        # "Then, if the kind allocates and the form is not NULL, the event's block has the next tag, which rises by
        # one."
        if has("allocates") and not form.value & NULL:
            event.tag = next_tag
            next_tag = next_tag + 1 & MASK
        events.append(event if is_known(kind) else replaced(event, has))
    # "The stream ends exactly after the block's last event."
    cursor.end()
    return events, (next_tag, named_tag, thread)


# ## The address stream


# "Let c be floor(size / 16) + floor((size mod 16 + 23) / 16). The class of a size is c if c is below 4,096; else 4,096
# + the number of significant bits of c."
def size_class(size):
    small = size // 16 + (size % 16 + 23) // 16
    return small if small < 4096 else 4096 + small.bit_length()


# "after(address, size) is the address plus a number that depends on the rounding:"
#
# "0 | max(32, (size + 23) with the low four bits cleared)"
#
# "1 | max(16, (size + 15) with the low four bits cleared)"
#
# "2 | max(8, (size + 7) with the low three bits cleared)"
#
# "3 | size"
def after(address, size, rounding):
    grown = (max(32, size + 23 & MASK & ~15), max(16, size + 15 & MASK & ~15), max(8, size + 7 & MASK & ~7), size)
    return address + grown[rounding] & MASK


class Addresses:
    """The known blocks, and the model that gives the address of a place."""

    def __init__(self):
        self.known = {}  # tag -> (address, size)
        self.restart()

    # "At a keyframe the model starts afresh, and the known blocks stay the same"
    def restart(self):
        self.freed = defaultdict(list)
        self.last_of_class = defaultdict(int)
        self.last = (0, 0)

    def decode(self, block, events):
        cursor = block.raw.get(ADDRESS_STREAM)
        if block.keyframe:
            self.restart()
        rounding = shift = 0
        if cursor:
            # "rounding is a varint from 0 to 3, shift from 0 to 12."
            rounding, shift = cursor.varint("the way to round", 3), cursor.varint("the common shift", 12)
        for event in events:
            given = self.known.get(event.old_tag) if event.old_tag else None
            # "If it was given a block that is not NULL and is not known, that block's address as a varint"
            if given:
                event.old_address = given[0]
            # "In this stream a block that an event only names counts as not given: its address is that of the known
            # block, or 0."
            elif event.old_tag and cursor and event.kind not in NAMES:
                event.old_address = cursor.varint()
            # "If it makes a block, the address of the new block as a place"
            if event.tag:
                if cursor:
                    event.address = self.place(cursor, given, event.bytes(), rounding, shift)
                self.last = (event.address, event.bytes())
                self.last_of_class[size_class(event.bytes())] = event.address
            if event.ends() and given:
                del self.known[event.old_tag]
                # "The event may have ended a known block and not made one at the same address. Then the ended block's
                # address is pushed on the stack of its size's class, unless it is 0."
                if given[0] and not (event.tag and event.address == given[0]):
                    self.push(*given)
            if event.tag:
                self.known[event.tag] = (event.address, event.bytes())
        if cursor:
            cursor.end()

    def place(self, cursor, given, size, rounding, shift):
        value = cursor.varint()
        # "If the event was given a known block, v = 0 means that block's address, and 1 is subtracted from any other v
        # first."
        if given:
            if value == 0:
                return given[0]
            value -= 1
        # "2k, k < 256 | the k-th of the freed addresses of this size's class, the newest being 0; it is removed"
        if value % 2 == 0 and value < 512:
            stack = self.freed[size_class(size)]
            if value // 2 >= len(stack):
                cursor.fail("no address was freed at that place")
            return stack.pop(-1 - value // 2)
        if value == 512:
            return cursor.varint()
        if value % 2 == 0:
            cursor.fail("a place that is too deep")
        near = after(*self.last, rounding) if value % 4 == 1 else self.last_of_class[size_class(size)]
        return near + (unzigzag(value // 4) << shift) & MASK

    # "A full stack first drops its older half; it is full at 16,384 addresses for classes below 128, and at 256 for
    # the others."
    def push(self, address, size):
        stack = self.freed[size_class(size)]
        full = 16384 if size_class(size) < 128 else 256
        if len(stack) >= full:
            del stack[:full // 2]
        stack.append(address)


# ### Live blocks


# "The table of a keyframe begins with a varint, the number of blocks known before the block's first event. Each of
# them, by rising tag, has three varints: tag less the tag before (0 at first), size, and zigzag(address less the
# address before (0 at first))."
def live_blocks(cursor):
    table, tag, address = {}, 0, 0
    for _ in range(cursor.varint()):
        tag = tag + cursor.varint() & MASK
        size = cursor.varint()
        address = address + unzigzag(cursor.varint()) & MASK
        table[tag] = (address, size)
    cursor.end()
    return table


# ## Times and usable sizes


def times_and_usable_sizes(block, events):
    cursor, time = block.raw.get(TIME_STREAM), block.time
    for event in events if cursor else ():
        # "for every event a varint; 0 is unknown, any other v is the time before + unzigzag(v - 1)"
        value = cursor.varint()
        if value:
            time = event.time = time + unzigzag(value - 1) & MASK
    if cursor:
        cursor.end()
    cursor = block.raw.get(USABLE_STREAM)
    for event in events if cursor else ():
        if event.tag:
            # "0 is unknown, any other v is bytes(event) + unzigzag(v - 1)."
            value = cursor.varint()
            if value:
                event.usable = event.bytes() + unzigzag(value - 1) & MASK
    if cursor:
        cursor.end()
    return time
