"""The outer parts of a .cmt: conventions, file header, sections, block headers. See decoder.py."""
from __future__ import annotations

import ctypes
import struct
import zlib
from dataclasses import dataclass, field


def find_zstd():
    """The shared library, which every Linux with a package manager has; a module may bring its own."""
    try:
        library = ctypes.CDLL("libzstd.so.1")
    except OSError:
        return None
    library.ZSTD_decompress.restype = ctypes.c_size_t
    library.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    return library


try:
    import zstandard
except ImportError:
    zstandard = None
libzstd = None if zstandard else find_zstd()

# ## Conventions

MASK = 2**64 - 1


class FormatError(Exception):
    """A file that is damaged or none: `offset` has the place in the file, `what` the fault, `path` the file if it is known."""

    def __init__(self, offset, what):
        super().__init__(offset, what)
        self.offset, self.what, self.path = offset, what, None

    def __str__(self):
        return (f"{self.path}: " if self.path else "") + f"offset {self.offset:#x}: {self.what}"


class CutOff(FormatError):
    """The input ends inside a section, or without a tail."""

    def __init__(self, offset):
        super().__init__(offset, "the trace breaks off")


class Cursor:
    """Reads bytes in order. `offset` is the offset in the file of the first byte, or of the frame of a stream."""

    def __init__(self, data, offset, stream=None):
        self.data, self.at, self.offset, self.stream = data, 0, offset, stream

    def fail(self, what, at=None):
        at = self.at if at is None else at
        if self.stream:
            stream = self.stream if self.stream == "names" else f"{self.stream} stream"
            raise FormatError(self.offset, f"{stream}: byte {at:#x}: {what}")
        raise FormatError(self.offset + at, what)

    def bytes(self, size):
        if size > len(self.data) - self.at:
            self.fail("cut off")
        self.at += size
        return self.data[self.at - size:self.at]

    def at_end(self):
        return self.at == len(self.data)

    # "A varint is LEB128: seven bits a byte, the least significant group first, the high bit set on every byte but the
    # last. It has at most 10 bytes and at most 64 bits."
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


# "zigzag maps a 64-bit difference d (computed modulo 2^64) to (d << 1) ^ (d >> 63) with the arithmetic shift"
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
    elif libzstd:
        # A frame that gives more fails, as a damaged one does: its size is then the code of an error.
        buffer = ctypes.create_string_buffer(max(raw_size, 1))
        size = libzstd.ZSTD_decompress(buffer, raw_size, bytes(frame), len(frame))
        raw = buffer.raw[:raw_size] if size == raw_size else b""
    else:
        raise ImportError("cmt_trace needs the library libzstd.so.1 or the module zstandard")
    if len(raw) != raw_size:
        cursor.fail("not one whole frame of the stated size")
    return raw


# ## Layout

# ### File header

MAGIC = b"\x89CMT\r\n\x1a\n"
ADDRESSES, TIMES, USABLE, STACKS, HEADER_LINES = 1, 2, 4, 8, 16


@dataclass
class FileHeader:
    version: int
    flags: int
    metadata: list
    size: int

    def sampled(self):
        """The interval of a sampled trace; 0 if its value is no number."""
        for key, value in self.metadata:
            if key == b"sampled":
                return int(value) if value.isdigit() and int(value) <= MASK else 0
        return None


def file_header(data):
    if data[:8] != MAGIC:
        raise FormatError(0, "not a .cmt file")
    if len(data) < 16:
        raise FormatError(0, "the file header is cut off")
    version, size = struct.unpack_from("<II", data, 8)
    # "the input ends inside the file header, another version | refuses the file; names the version"
    if version not in (1, 2):
        raise FormatError(8, f"version {version} of .cmt; this reader knows versions 1 and 2")
    # "size | u32 | of the fields below, without the CRC; at most 2^27"
    if size > 2**27:
        raise FormatError(12, "a header above its limit")
    if len(data) < 16 + size + 4:
        raise FormatError(0, "the file header is cut off")
    # "crc | u32 | CRC-32 of everything before it"
    if struct.unpack_from("<I", data, 16 + size)[0] != zlib.crc32(data[:16 + size]):
        raise FormatError(16 + size, "the checksum of the file header is wrong")
    cursor = Cursor(data[16:16 + size], 16)
    flags = cursor.varint()
    count = cursor.varint("the number of metadata", 1024)
    # "key, value | string, string | count times; at most 256 and 65,536 bytes."
    metadata = [(cursor.string("a key's size", 256), cursor.string("a value's size", 65536)) for _ in range(count)]
    # "Bytes may follow the metadata inside size; a reader skips them."
    header = FileHeader(version, flags, metadata, 16 + size + 4)
    # "the key sampled in version 1, no such key in version 2, or no number above 0 as its value | refuses the file"
    interval = header.sampled()
    if version == 1 and interval is not None:
        raise FormatError(8, "version 1 with the key sampled, which needs version 2")
    if version == 2 and interval is None:
        raise FormatError(8, "version 2 without the key sampled")
    if interval == 0:
        raise FormatError(8, "the key sampled is not a number above 0")
    return header


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
            raise CutOff(offset)
        kind, header_size, body_size = struct.unpack_from("<4sII", data, offset)
        if header_size > 2**26:
            raise FormatError(offset + 4, "a section's header above its limit")
        if body_size > 2**28:
            raise FormatError(offset + 8, "a section's body above its limit")
        crc = offset + 12 + header_size
        if crc + 4 > len(data):
            raise CutOff(offset)
        # "crc | u32 | CRC-32 of type, sizes and header; a reader verifies it before it uses the sizes"
        if struct.unpack_from("<I", data, crc)[0] != zlib.crc32(data[offset:crc]):
            raise FormatError(crc, "the checksum of a section is wrong")
        end = crc + 4 + body_size
        if end > len(data):
            raise CutOff(offset)
        header = Cursor(data[offset + 12:crc], offset + 12)
        yield Section(kind, offset, header, data[crc + 4:end], crc + 4, end)
        offset = end


# ### Block header

CORE, ADDRESS_STREAM, LIVE_BLOCKS, TIME_STREAM, USABLE_STREAM = range(1, 6)
STACK_STREAM, STACK_DEFINITIONS, ORIGINS, POOL_STACK_STREAM, FRAME_NAMES = range(6, 11)
STREAM_NAMES = {1: "core", 2: "address", 3: "live block", 4: "time", 5: "usable size", 6: "stack",
                7: "stack definition", 8: "origin", 9: "pool stack", 10: "frame name"}


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
    pools: list = field(default_factory=list)
    raw: dict = field(default_factory=dict)  # id -> Cursor over the decompressed stream


def block_header(section):
    cursor = section.header
    block = Block(section.offset, cursor.varint(), cursor.varint("a block's number of events", 2**20),
                  cursor.varint(), cursor.varint(), cursor.varint("a thread", 2**32 - 1), cursor.varint(),
                  cursor.varint("the keyframe flag", 1), [])
    offset = section.body_offset
    for _ in range(cursor.varint("the number of streams", 64)):
        stream = cursor.varint()
        raw_size, size = cursor.varint("a stream's size", 2**28), cursor.varint("a stream's size", 2**28)
        block.streams.append((stream, raw_size, size, offset))
        offset += size
    # "pools | varint | only in a block with events of pools"
    if not cursor.at_end():
        for _ in range(cursor.varint("the number of pools", 4096)):
            block.pools.append(cursor.string("the length of a pool's name", 256))
    # "The body holds the frames, one after the other, in this order, and nothing else"
    if offset != section.end:
        raise FormatError(section.offset, "the sizes of the streams do not add up to the body")
    for stream, raw_size, size, at in block.streams:
        # "A reader skips a stream whose id it does not know."
        if stream in STREAM_NAMES:
            start = at - section.body_offset
            if stream in block.raw:
                raise FormatError(section.offset, "a block with two streams of one kind")
            cursor = block.raw[stream] = Cursor(b"", at, STREAM_NAMES[stream])
            cursor.data = decompress(section.body[start:start + size], raw_size, cursor)
    # "Core is always present."
    if CORE not in block.raw:
        raise FormatError(section.offset, "a block without a core stream")
    return block
