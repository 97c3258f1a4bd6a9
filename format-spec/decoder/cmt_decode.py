#!/usr/bin/env python3
"""A second decoder of .cmt, version 1, written from cmt.md alone and laid out in its order.

    cmt_decode.py FILE.cmt              prints the canonical text (text.md)
    cmt_decode.py --sections FILE.cmt   prints the sections, the streams and their sizes
    cmt_decode.py --check FILE.cmt      verifies also what a reader need not: tables of keyframes, index, totals

The comments quote the sentence of the specification that the step below them follows. It is meant to be read, and to
test the document and the other decoder; it holds the whole file in memory and takes some seconds for a million events.
"""
import struct
import subprocess
import sys
import zlib
from collections import defaultdict
from dataclasses import dataclass, field

try:
    import zstandard
except ImportError:
    zstandard = None

# ## Conventions

MASK = 2**64 - 1


class FormatError(Exception):
    def __init__(self, offset, what):
        super().__init__(f"offset {offset:#x}: {what}")


class CutOff(Exception):
    """The input ends inside a section."""


class Cursor:
    """Reads bytes in order. `offset` is that of the first in the file, or of the frame that the stream was."""

    def __init__(self, data, offset, stream=None):
        self.data, self.at, self.offset, self.stream = data, 0, offset, stream

    def fail(self, what, at=None):
        at = self.at if at is None else at
        if self.stream:
            raise FormatError(self.offset, f"{self.stream} stream: byte {at:#x}: {what}")
        raise FormatError(self.offset + at, what)

    def bytes(self, size):
        if size > len(self.data) - self.at:
            self.fail("cut off")
        self.at += size
        return self.data[self.at - size:self.at]

    # "A varint is LEB128: seven bits a byte, the least significant group first, the high bit set on every byte but the
    # last; at most 10 bytes, at most 64 bits."
    def varint(self, what=None, limit=MASK):
        start, value = self.at, 0
        for shift in range(0, 70, 7):
            if self.at == len(self.data):
                self.fail("a number is cut off", start)
            byte = self.bytes(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
        else:
            self.fail("a number of more than 64 bits", start)
        if value > MASK:
            self.fail("a number of more than 64 bits", start)
        if value > limit:
            self.fail(f"{what} {value} is above its limit", start)
        return value

    # "A string is a varint, its length in bytes, and the bytes."
    def string(self, what, limit):
        return self.bytes(self.varint(what, limit))

    def end(self):
        if self.at != len(self.data):
            self.fail("bytes after the last event")


# "zigzag maps a 64-bit difference d to (d << 1) ^ (d >> 63) with the arithmetic shift"
def unzigzag(value):
    return (value >> 1) ^ -(value & 1)


# "A frame is one zstd frame (RFC 8878) with its content size and its checksum. No dictionary."
def decompress(frame, raw_size, cursor):
    if len(frame) < 6 or frame[:4] != b"\x28\xb5\x2f\xfd":
        cursor.fail("not one whole frame of the stated size")
    descriptor = frame[4]
    single, checksum, dictionary = descriptor >> 5 & 1, descriptor >> 2 & 1, descriptor & 3
    width = (1 if single else 0, 2, 4, 8)[descriptor >> 6]
    start = 5 if single else 6
    content = int.from_bytes(frame[start:start + width], "little") + (256 if width == 2 else 0)
    if not width or not checksum or dictionary or content != raw_size:
        cursor.fail("not one whole frame of the stated size")
    if zstandard:
        try:
            raw = zstandard.ZstdDecompressor().decompress(frame, max_output_size=raw_size)
        except zstandard.ZstdError:
            raw = b""
    else:
        run = subprocess.run(["zstd", "-dcq"], input=frame, capture_output=True)
        raw = run.stdout if run.returncode == 0 else b""
    if len(raw) != raw_size:
        cursor.fail("not one whole frame of the stated size")
    return raw


# ## Layout

# ### File header

MAGIC = b"\x89CMT\r\n\x1a\n"
ADDRESSES, TIMES, USABLE, STACKS, HEADER_LINES = 1, 2, 4, 8, 16


@dataclass
class FileHeader:
    flags: int
    metadata: list
    size: int


def file_header(data):
    if data[:8] != MAGIC:
        raise FormatError(0, "not a .cmt file")
    if len(data) < 16:
        raise FormatError(0, "the file header is cut off")
    version, size = struct.unpack_from("<II", data, 8)
    # "another version | refuses the file and names the version"
    if version != 1:
        raise FormatError(8, f"version {version} of .cmt; this reader knows version 1")
    # "size: u32: of the fields below, without the CRC; at most 2^27"
    if size > 2**27:
        raise FormatError(12, "a header above its limit")
    if len(data) < 16 + size + 4:
        raise FormatError(0, "the file header is cut off")
    # "crc: u32: CRC-32 of everything before it"
    if struct.unpack_from("<I", data, 16 + size)[0] != zlib.crc32(data[:16 + size]):
        raise FormatError(16 + size, "the checksum of the file header is wrong")
    cursor = Cursor(data[16:16 + size], 16)
    flags = cursor.varint()
    count = cursor.varint("the number of metadata", 1024)
    # "key, value: string, string: count times; at most 256 and 65,536 bytes."
    metadata = [(cursor.string("a key's size", 256), cursor.string("a value's size", 65536)) for _ in range(count)]
    # "Bytes may follow the metadata inside size; a reader skips them."
    return FileHeader(flags, metadata, 16 + size + 4)


# ### Section


@dataclass
class Section:
    type: bytes
    offset: int
    header: Cursor
    body: bytes
    body_offset: int
    end: int


def sections(data, offset):
    while offset < len(data):
        if len(data) - offset < 12:
            raise CutOff
        kind, header_size, body_size = struct.unpack_from("<4sII", data, offset)
        if header_size > 2**26:
            raise FormatError(offset + 4, "a section's header above its limit")
        if body_size > 2**28:
            raise FormatError(offset + 8, "a section's body above its limit")
        crc = offset + 12 + header_size
        if crc + 4 > len(data):
            raise CutOff
        # "crc: u32: CRC-32 of type, sizes and header"
        if struct.unpack_from("<I", data, crc)[0] != zlib.crc32(data[offset:crc]):
            raise FormatError(crc, "the checksum of a section is wrong")
        end = crc + 4 + body_size
        if end > len(data):
            raise CutOff
        header = Cursor(data[offset + 12:crc], offset + 12)
        yield Section(kind, offset, header, data[crc + 4:end], crc + 4, end)
        offset = end


# ### Block header

CORE, ADDRESS_STREAM, LIVE_BLOCKS, TIME_STREAM, USABLE_STREAM = 1, 2, 3, 4, 5
STREAM_NAMES = {1: "core", 2: "address", 3: "live block", 4: "time", 5: "usable size", 6: "stack"}


@dataclass
class Block:
    offset: int
    first_event: int
    events: int
    next_tag: int
    named_tag: int
    thread: int
    time: int
    keyframe: int
    streams: list  # of (id, raw size, size, offset in the file)
    raw: dict = field(default_factory=dict)  # id -> Cursor over the decompressed stream


def block_header(section):
    cursor = section.header
    block = Block(section.offset, cursor.varint(), cursor.varint("a block's number of events", 2**20),
                  cursor.varint(), cursor.varint(), cursor.varint("a thread", 2**32 - 1), cursor.varint(),
                  cursor.varint("the keyframe flag", 1), [])
    offset = section.body_offset
    for _ in range(cursor.varint("the number of streams", 64)):
        stream, raw_size, size = cursor.varint(), cursor.varint("a stream's size", 2**28), cursor.varint("a stream's size", 2**28)
        block.streams.append((stream, raw_size, size, offset))
        offset += size
    # "The body holds the frames, one after the other, in this order."
    if offset != section.end:
        raise FormatError(section.offset, "the sizes of the streams do not add up to the body")
    for stream, raw_size, size, at in block.streams:
        # "A reader skips a stream whose id it does not know."
        if stream in (CORE, ADDRESS_STREAM, LIVE_BLOCKS, TIME_STREAM, USABLE_STREAM):
            start = at - section.body_offset
            if stream in block.raw:
                raise FormatError(section.offset, "a block with two streams of one kind")
            cursor = block.raw[stream] = Cursor(b"", at, STREAM_NAMES[stream])
            cursor.data = decompress(section.body[start:start + size], raw_size, cursor)
    # "Core is always there."
    if CORE not in block.raw:
        raise FormatError(section.offset, "a block without a core stream")
    return block


# ## Kinds

KINDS = ("malloc free calloc realloc reallocarray aligned_alloc posix_memalign memalign valloc pvalloc free_sized "
         "free_aligned_sized operator_new operator_new_nothrow operator_new_array operator_new_array_nothrow "
         "operator_delete operator_delete_sized operator_delete_array operator_delete_array_sized thread_start thread_exit "
         "thread_name mark sample").split()
ALLOCATES = {0, *range(2, 10), *range(12, 16)}
RELEASES = {1, 3, 4, 10, 11, *range(16, 20)}
SIZES = {0, *range(2, 16), 17, 19, 24}
COUNTS = {2, 4}
ALIGNS = {5, 6, 7, 11}
MAY_ALIGN = set(range(12, 20))
LABELS = {22, 23}
THREAD_SWITCH, TAG_SKIP = 25, 26


@dataclass(slots=True)
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

    # "bytes(event) is size times count, or 2^64 - 1 where that overflows."
    def bytes(self):
        return min(self.size * self.count, MASK)

    # "An event ends the block that it was given, unless that is NULL, or the event allocates, returned NULL and asked for
    # more than 0 bytes (a realloc that was refused)."
    def ends(self):
        return self.old_tag != 0 and not (self.kind in ALLOCATES and self.tag == 0 and self.bytes() > 0)

    def refused(self):
        return self.kind in ALLOCATES and self.tag == 0 and self.bytes() > 0


# ## The core stream

# ### Table of forms

DELTA, NULL, WIDE, ALIGNED = 32, 64, 128, 256


def table_of_forms(cursor):
    forms = []
    for _ in range(cursor.varint("the number of forms", 128)):
        at = cursor.at
        form = cursor.varint()
        operation = form & 31
        # "By delta is only for kinds that release, NULL for those that allocate, aligned for those that may align, wide for
        # what has an operand."
        if (form > 511 or operation > TAG_SKIP or (form & WIDE and operation in (20, 21)) or (form & DELTA and operation not in RELEASES) or
                (form & NULL and operation not in ALLOCATES) or (form & ALIGNED and operation not in MAY_ALIGN)):
            cursor.fail(f"unknown form {form}", at)
        length = cursor.varint("a code's length", 7)
        if length == 0:
            cursor.fail("a code of no bits", at)
        forms.append((form, length))
        # "The sum of 2^-length over the forms is at most 1."
        if sum(128 >> length for _, length in forms) > 128:
            cursor.fail("more codes than there is room for", at)
    # "code = 0; for each length from 1 to 7, shift code left by one; for each form of this length, in the table's order,
    # the form gets code, and code rises by one. A code stands in an item with its bits reversed"
    codes, code = {}, 0
    for length in range(1, 8):
        code <<= 1
        for form, its_length in forms:
            if its_length == length:
                codes[length, int(f"{code:0{length}b}"[::-1], 2)] = form
                code += 1
    return codes


# ### Items


def core(block):
    cursor = block.raw[CORE]
    codes = table_of_forms(cursor)
    # "The state is next tag, named tag and thread, from the block header."
    next_tag, named_tag, thread = block.next_tag, block.named_tag, block.thread
    events = []
    while len(events) < block.events:
        # "An item begins with a varint whose low bits are a form's code: exactly one form's code fits, or the stream is
        # damaged."
        item = cursor.varint()
        length = next((n for n in range(1, 8) if (n, item & (1 << n) - 1) in codes), None)
        if length is None:
            cursor.fail("a code that no form has")
        form, first = codes[length, item & (1 << length) - 1], item >> length
        kind = form & 31
        # "The bits above the code are the first operand, unless the form is wide or has no operands; then they are 0. All
        # other operands are varints of their own"
        operands = [] if form & WIDE else [first]
        if form & WIDE and first:
            cursor.fail("a code that no form has")

        def operand():
            return operands.pop() if operands else cursor.varint()

        # "A thread switch has one operand: the thread of the events after it. A tag skip has one: the next tag rises by it."
        if kind == THREAD_SWITCH:
            thread = operand()
            if thread > 2**32 - 1:
                cursor.fail("a thread above its limit")
            continue
        if kind == TAG_SKIP:
            next_tag = next_tag + operand() & MASK
            continue
        event = Event(kind, thread)
        if kind in RELEASES:
            # "The block given is, by delta, named tag + unzigzag(operand); else NULL for the operand 0, and next tag -
            # operand for any other. If it is not NULL it becomes the named tag."
            value = operand()
            if form & DELTA:
                event.old_tag = named_tag + unzigzag(value) & MASK
            elif value:
                event.old_tag = next_tag - value & MASK
            if event.old_tag:
                named_tag = event.old_tag
        if kind in SIZES:
            event.size = operand()
        if kind in COUNTS:
            event.count = operand()
        if kind in ALIGNS or form & ALIGNED:
            event.alignment = operand()
        if kind in LABELS:
            # "the label's length in bytes (at most 4,096), if it has one; the label's bytes follow."
            size = operand()
            if size > 4096:
                cursor.fail("a label above its limit")
            event.label = cursor.bytes(size)
        if any(operands):
            cursor.fail("a code that no form has")
        # "Then, if the kind allocates and the form is not NULL, the event's block has the next tag, which rises by one."
        if kind in ALLOCATES and not form & NULL:
            event.tag = next_tag
            next_tag = next_tag + 1 & MASK
        events.append(event)
    # "The stream ends exactly after the block's last event."
    cursor.end()
    return events, (next_tag, named_tag, thread)


# ## The address stream


# "The class of a size is c = floor(size / 16) + floor((size mod 16 + 23) / 16) if c is below 4,096; else 4,096 + the number
# of significant bits of c."
def size_class(size):
    small = size // 16 + (size % 16 + 23) // 16
    return small if small < 4096 else 4096 + small.bit_length()


# "after(address, size) is the address plus, by rounding: 0: max(32, (size + 23) with the low four bits cleared); 1: max(16,
# (size + 15) with the low four bits cleared); 2: max(8, (size + 7) with the low three bits cleared); 3: size."
def after(address, size, rounding):
    grown = (max(32, size + 23 & MASK & ~15), max(16, size + 15 & MASK & ~15), max(8, size + 7 & MASK & ~7), size)[rounding]
    return address + grown & MASK


class Addresses:
    """The known blocks, and the model from which places are told."""

    def __init__(self):
        self.known = {}  # tag -> (address, size)
        self.restart()

    # "At a keyframe the model starts afresh; the known blocks stay what they are"
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
            # "if it was given a block that is not NULL and is not known, that block's address as a varint"
            if given:
                event.old_address = given[0]
            elif event.old_tag and cursor:
                event.old_address = cursor.varint()
            # "if it makes a block, that one's address as a place"
            if event.tag:
                if cursor:
                    event.address = self.place(cursor, given, event.bytes(), rounding, shift)
                self.last = (event.address, event.bytes())
                self.last_of_class[size_class(event.bytes())] = event.address
            if event.ends() and given:
                del self.known[event.old_tag]
                # "If the event ended a known block, and did not make one at the same address, that one's address is pushed
                # on the stack of its size's class, unless it is 0."
                if given[0] and not (event.tag and event.address == given[0]):
                    self.push(*given)
            if event.tag:
                self.known[event.tag] = (event.address, event.bytes())
        if cursor:
            cursor.end()

    def place(self, cursor, given, size, rounding, shift):
        value = cursor.varint()
        # "If the event was given a known block: v = 0 means that block's address; otherwise v is taken as v - 1."
        if given:
            if value == 0:
                return given[0]
            value -= 1
        # "2k, k < 256: the k-th of the freed addresses of this size's class, the newest being 0; it is removed"
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

    # "A full stack first drops its older half; it is full at 16,384 addresses for classes below 128, and at 256 for the
    # others."
    def push(self, address, size):
        stack = self.freed[size_class(size)]
        full = 16384 if size_class(size) < 128 else 256
        if len(stack) >= full:
            del stack[:full // 2]
        stack.append(address)


# ### Live blocks


# "The table of a keyframe: a varint, the number of blocks known before the block's first event; then for each, by rising
# tag, three varints: tag less the tag before (0 at first), size, and zigzag(address less the address before (0 at first))."
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


# ## Index


# "A varint, the number of blocks of the stream; then for each, less the block before (all 0 before the first): (offset << 1)
# | keyframe, where offset is the difference of the sections' offsets in the file; first event; next tag; time."
def index(cursor):
    entries, offset, first_event, next_tag, time = [], 0, 0, 0, 0
    for _ in range(cursor.varint()):
        value = cursor.varint()
        offset += value >> 1
        first_event, next_tag, time = (before + cursor.varint() & MASK for before in (first_event, next_tag, time))
        entries.append((offset, value & 1, first_event, next_tag, time))
    return entries


# ## Totals

TOTALS = ["broke off", "events", "refused", "blocks made", "bytes", "peak of live blocks", "peak of live bytes",
          "event of the peak", "live blocks", "live bytes", "threads", "repairs"]


def totals(cursor):
    stated = {name: cursor.varint("the flag of truncation", 1 if name == "broke off" else MASK) for name in TOTALS}
    # "the number of kinds (25); and for each kind, by its value, the number of its events."
    stated["kinds"] = [cursor.varint() for _ in range(cursor.varint("the number of kinds", 25))]
    return stated


class Counted:
    """What the totals should be, by counting."""

    def __init__(self):
        self.now = dict.fromkeys(TOTALS, 0)
        self.kinds, self.threads, self.live = [0] * len(KINDS), set(), {}

    def add(self, event):
        now = self.now
        now["events"] += 1
        now["refused"] += event.refused()
        self.kinds[event.kind] += 1
        self.threads.add(event.thread)
        # "Live bytes and blocks count what was made in this trace."
        if event.ends() and event.old_tag in self.live:
            now["live bytes"] -= self.live.pop(event.old_tag)
        if event.tag:
            self.live[event.tag] = event.bytes()
            now["blocks made"] += 1
            now["bytes"] = now["bytes"] + event.bytes() & MASK
            now["live bytes"] += event.bytes()
        now["live bytes"] &= MASK
        now["live blocks"] = len(self.live)
        now["peak of live blocks"] = max(now["peak of live blocks"], now["live blocks"])
        if now["live bytes"] > now["peak of live bytes"]:
            now["peak of live bytes"], now["event of the peak"] = now["live bytes"], now["events"]

    def all(self, stated):
        return {**self.now, "threads": len(self.threads), "kinds": self.kinds,
                "broke off": stated["broke off"], "repairs": stated["repairs"]}


# ## The text (text.md)


def quoted(text):
    escapes = {ord('"'): b'\\"', ord("\\"): b"\\\\", 9: b"\\t", 10: b"\\n", 13: b"\\r"}
    return b'"' + b"".join(escapes.get(c) or (b"\\x%02x" % c if c < 32 or c == 127 else bytes([c])) for c in text) + b'"'


# "A value is written bare where it can be, else as a string." "bare = any printable ASCII character but blank, quote, #"
def value_text(value):
    bare = value and all(33 <= c <= 126 and c not in b'"#' for c in value)
    return value if bare else quoted(value)


def header_text(header):
    return b"#cmt text=1\n" + b"".join(b"#cmt %s=%s\n" % (key, value_text(value)) for key, value in header.metadata)


def block_text(address, tag):
    if tag == 0:
        return "0"
    return f"{address:x}<{tag}>" if address else f"<{tag}>"


def line(event):
    name = KINDS[event.kind]
    arguments = [block_text(event.old_address, event.old_tag)] if event.kind in RELEASES else []
    arguments += [str(event.alignment)] if event.kind in ALIGNS else []
    arguments += [str(event.count)] if event.kind in COUNTS else []
    arguments += [str(event.size)] if event.kind in SIZES else []
    arguments += [f"align={event.alignment}"] if event.kind in MAY_ALIGN and event.alignment else []
    arguments += ["nothrow"] if name.endswith("_nothrow") else []
    if name.startswith("operator_"):
        name = "operator " + name.split("_")[1] + ("[]" if "_array" in name else "")
    text = f"{name}({', '.join(arguments)}".encode() + (quoted(event.label) if event.kind in LABELS else b"") + b")"
    if event.kind in ALLOCATES:
        text += f" = {block_text(event.address, event.tag)}".encode()
    for key, value in ("thread", event.thread or None), ("time", event.time), ("usable", event.usable):
        text += f" {key}={value}".encode() if value is not None else b""
    return text + b"\n"


# ## A whole file


class Decoder:
    def __init__(self, data, check):
        self.data, self.check = data, check
        self.header = file_header(data)
        self.addresses, self.counted = Addresses(), Counted()
        self.events, self.state, self.time, self.index = 0, None, 0, []
        self.totals = self.totals_offset = self.index_offset = None
        self.whole = self.broke_off = False

    def blocks(self):
        """The events of each block of the stream; `whole` says afterwards whether a tail was met."""
        try:
            for section in sections(self.data, self.header.size):
                if section.type == b"BLCK":
                    yield self.block(section)
                elif section.type == b"INDX":
                    self.index_offset = section.offset
                    if index(section.header) != self.index and self.check:
                        raise FormatError(section.offset, "the index differs from the blocks met")
                elif section.type == b"TOTL":
                    self.end_totals(section)
                elif section.type == b"TAIL":
                    self.whole = True
                    # "nothing after them"
                    if section.end != len(self.data):
                        raise FormatError(section.end, "bytes after the tail")
                    # "Two u64: offset of the index section, offset of the totals section."
                    stated = struct.unpack("<QQ", section.header.bytes(16))
                    if self.check and stated != (self.index_offset, self.totals_offset):
                        raise FormatError(section.offset, "the tail differs from the sections met")
                # "A reader skips a section of a type that it does not know."
        # "the input ends inside a section, or without a tail: hands out all whole blocks, and says that the trace breaks
        # off"
        except CutOff:
            pass

    def block(self, section):
        block = block_header(section)
        if block.first_event != self.events:
            raise FormatError(section.offset, "blocks are missing before this one")
        if self.check and self.state not in (None, (block.next_tag, block.named_tag, block.thread)):
            raise FormatError(section.offset, "the block header differs from the running state")
        if LIVE_BLOCKS in block.raw:
            table = live_blocks(block.raw[LIVE_BLOCKS])
            if self.check and table != self.addresses.known:
                raise FormatError(section.offset, "the table of live blocks differs from the running state")
        events, self.state = core(block)
        self.addresses.decode(block, events)
        self.index.append((block.offset, block.keyframe, block.first_event, block.next_tag, block.time))
        self.time = times_and_usable_sizes(block, events)
        self.events += len(events)
        if self.check:
            for event in events:
                self.counted.add(event)
        return events

    def end_totals(self, section):
        self.totals, self.totals_offset = totals(section.header), section.offset
        self.broke_off = self.totals["broke off"] == 1
        if self.check:
            for name, value in self.counted.all(self.totals).items():
                if self.totals[name] != value:
                    raise FormatError(section.offset, f"totals: {name} is {self.totals[name]}, counted {value}")


def print_text(decoder, path):
    out = sys.stdout.buffer
    # "16: the text has header lines (so it has where there is metadata)"
    lines = decoder.header.flags & HEADER_LINES or decoder.header.metadata
    if lines:
        out.write(header_text(decoder.header))
    for events in decoder.blocks():
        out.writelines(map(line, events))
    out.flush()
    if not decoder.whole:
        decoder.broke_off = True
    if decoder.broke_off:
        print(f"cmt_decode: warning: {path}: the trace breaks off; all that is whole was read", file=sys.stderr)
    if lines:
        if decoder.totals and decoder.totals["repairs"]:
            out.write(b"#cmt repairs=%d\n" % decoder.totals["repairs"])
        out.write(b"#cmt end=truncated\n" if decoder.broke_off else b"#cmt end=complete\n")


def print_sections(data):
    header = file_header(data)
    print(f"{0:#10x} file header, {header.size} bytes, flags {header.flags}, {len(header.metadata)} metadata")
    try:
        for section in sections(data, header.size):
            print(f"{section.offset:#10x} {section.type.decode('latin-1')}, {section.end - section.offset} bytes", end="")
            if section.type == b"BLCK":
                block = block_header(section)
                print(f", events from {block.first_event}: {block.events}, next tag {block.next_tag}, named tag "
                      f"{block.named_tag}, thread {block.thread}, time {block.time}" + ", keyframe" * block.keyframe)
                for stream, raw_size, size, at in block.streams:
                    print(f"{at:#10x}   {STREAM_NAMES.get(stream, stream)}: {raw_size} bytes raw, {size} as a frame")
            else:
                print()
    except CutOff:
        print(f"{len(data):#10x} cut off")


def main():
    options = [word for word in sys.argv[1:] if word.startswith("--")]
    paths = [word for word in sys.argv[1:] if not word.startswith("--")]
    if len(paths) != 1 or any(option not in ("--sections", "--check") for option in options):
        sys.exit("Usage: cmt_decode.py [--sections] [--check] FILE.cmt")
    path = paths[0]
    try:
        with open(path, "rb") as file:
            data = file.read()
        if "--sections" in options:
            print_sections(data)
        else:
            print_text(Decoder(data, "--check" in options), path)
    except FormatError as error:
        sys.stdout.flush()
        print(f"cmt_decode: {path}: {error}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        print(f"cmt_decode: {path}: {error.strerror}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
