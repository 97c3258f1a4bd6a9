#!/usr/bin/env python3
"""Makes the damaged, the odd and the legacy files of format-spec/vectors, byte by byte: make_damaged.py FOLDER.

NAME.cmt is written here; NAME.error (what a decoder says, after its own name) and NAME.decoded (what it prints) are
looked at by hand, and kept.
"""
import struct
import subprocess
import sys
import zlib
from pathlib import Path


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def numbers(*values):
    return b"".join(map(varint, values))


def crc(data):
    return data + struct.pack("<I", zlib.crc32(data))


def frame(raw):
    path = Path("/dev/shm" if Path("/dev/shm").is_dir() else "/tmp") / "make_damaged.raw"
    path.write_bytes(raw)
    out = subprocess.run(["zstd", "-qc", "--check", str(path)], capture_output=True, check=True).stdout
    path.unlink()
    return out


def file_header(fields=numbers(0, 0), version=1, size=None):
    return crc(b"\x89CMT\r\n\x1a\n" + struct.pack("<II", version, len(fields) if size is None else size) + fields)


def section(kind, header=b"", body=b"", header_size=None, body_size=None):
    return crc(kind + struct.pack("<II", len(header) if header_size is None else header_size,
                                  len(body) if body_size is None else body_size) + header) + body


# malloc(8) = <1>, free(<1>)
CORE = bytes([2, 0, 1, 1, 1, 8 << 1, 1 << 1 | 1])


def block(streams, events=2, first=0, thread=0, keyframe=1, count=None, sizes=None):
    frames = [(each[0], len(each[1]) if len(each) < 3 else each[2], frame(each[1])) for each in streams]
    head = numbers(first, events, 1, 0, thread, 0, keyframe, len(frames) if count is None else count)
    for i, (stream, raw_size, data) in enumerate(frames):
        head += numbers(stream, raw_size, len(data) if sizes is None else sizes[i])
    return section(b"BLCK", head, b"".join(data for _, _, data in frames))


def end(before, broke_off=0, extra=b""):
    index = len(before)
    file = before + section(b"INDX", numbers(1, (22 - 0) << 1 | 1, 0, 1, 0))
    kinds = [0] * 25
    kinds[0] = kinds[1] = 1
    totals = len(file)
    file += section(b"TOTL", numbers(broke_off, 2, 0, 1, 8, 1, 8, 1, 0, 0, 1, 0, 25, *kinds) + extra)
    return file + section(b"TAIL", struct.pack("<QQ", index, totals))


def core_block(core, events=2):
    return file_header() + block([(1, core)], events)


def files():
    head, good = file_header(), block([(1, CORE)])
    whole = end(head + good)
    # Not damaged: all of these are read.
    yield "skip_unknown_section", end(head + section(b"NEWS", b"header", b"body") + good + section(b"LAST"))
    yield "skip_unknown_stream", end(head + block([(40, b"?"), (1, CORE), (6, b"stacks")]))
    yield "skip_more_fields", end(file_header(numbers(0, 0) + b"more") + good, extra=b"more")
    yield "broke_off_seed_form", end(head + good, broke_off=1)
    yield "cut_in_block", head + good + good[:30]
    yield "cut_after_block", head + good
    yield "cut_in_tail", whole[:-1]
    # File header.
    yield "bad_header_checksum", whole[:17] + bytes([whole[17] ^ 1]) + whole[18:]
    yield "bad_header_size", file_header(size=2**27 + 1)
    yield "bad_header_cut", whole[:19]
    yield "bad_header_metadata", file_header(numbers(0, 1025))
    yield "bad_header_key", file_header(numbers(0, 1, 257) + b"k" * 257)
    yield "bad_header_fields", file_header(numbers(0, 2, 1) + b"k" + numbers(9) + b"v")
    yield "bad_version", file_header(version=2)
    # Sections.
    yield "bad_section_checksum", whole[:40] + bytes([whole[40] ^ 0x80]) + whole[41:]
    yield "bad_section_type", whole.replace(b"BLCK", b"BLCJ")
    yield "bad_section_header_size", head + section(b"BLCK", header_size=2**26 + 1)
    yield "bad_section_body_size", head + section(b"BLCK", body_size=2**28 + 1)
    yield "bad_bytes_after_tail", whole + b"x"
    yield "bad_two_files", whole + whole
    # Block header.
    yield "bad_block_events", head + block([(1, CORE)], events=2**20 + 1)
    yield "bad_block_thread", head + block([(1, CORE)], thread=2**32)
    yield "bad_block_keyframe", head + block([(1, CORE)], keyframe=2)
    yield "bad_block_streams", head + block([(1, CORE)], count=65)
    yield "bad_block_cut", head + block([(1, CORE)], count=2)
    yield "bad_block_first_event", head + good + block([(1, CORE)], first=3)
    yield "bad_block_sizes", head + block([(1, CORE)], sizes=[10])
    yield "bad_block_no_core", head + block([(2, CORE)])
    yield "bad_block_two_cores", head + block([(1, CORE), (1, CORE)])
    yield "bad_raw_size", head + block([(1, CORE, 8)])
    yield "bad_raw_size_huge", head + block([(1, CORE, 2**28)])
    yield "bad_raw_size_limit", head + block([(1, CORE, 2**28 + 1)])
    at = whole.index(frame(CORE))
    yield "bad_frame", whole[:at + 8] + bytes([whole[at + 8] ^ 4]) + whole[at + 9:]
    yield "bad_frame_checksum", whole[:at + len(frame(CORE)) - 1] + b"\0" + whole[at + len(frame(CORE)):]
    # Core.
    yield "bad_core_forms", core_block(numbers(129))
    yield "bad_core_operation", core_block(numbers(1, 27, 1, 0))
    yield "bad_core_form_delta", core_block(numbers(1, 32, 1, 0))
    yield "bad_core_form_null", core_block(numbers(1, 65, 1, 0))
    yield "bad_core_form_aligned", core_block(numbers(1, 256, 1, 0))
    yield "bad_core_form_wide", core_block(numbers(1, 20 + 128, 1, 0))
    yield "bad_core_form_bits", core_block(numbers(1, 512, 1, 0))
    yield "bad_core_length_0", core_block(numbers(1, 0, 0, 0))
    yield "bad_core_length_8", core_block(numbers(1, 0, 8, 0))
    yield "bad_core_kraft", core_block(numbers(3, 0, 1, 1, 1, 2, 7))
    yield "bad_core_code", core_block(numbers(1, 0, 1, 1))
    yield "bad_core_wide_bits", core_block(numbers(1, 128, 1, 2, 7), 1)
    yield "bad_core_no_operand_bits", core_block(numbers(1, 20, 1, 2), 1)
    yield "bad_core_thread", core_block(numbers(1, 25, 1, 2**33), 1)
    yield "bad_core_label_limit", core_block(numbers(1, 23, 1, 4097 << 1) + b"x" * 4097, 1)
    yield "bad_core_label_cut", core_block(numbers(1, 23, 1, 5 << 1) + b"four", 1)
    yield "bad_core_number_cut", core_block(numbers(1, 0, 1) + b"\x80", 1)
    yield "bad_core_number_long", core_block(numbers(1, 0, 1) + b"\xfe" + b"\xff" * 8 + b"\x02", 1)
    yield "bad_core_early_end", core_block(CORE, 3)
    yield "bad_core_late_end", core_block(CORE, 1)
    # The other streams.
    def with_stream(number, raw):
        return head + block([(1, CORE), (number, raw)])

    yield "bad_addresses_rounding", with_stream(2, numbers(4, 0, 1))
    yield "bad_addresses_shift", with_stream(2, numbers(0, 13, 1))
    yield "bad_addresses_depth", with_stream(2, numbers(0, 0, 514))
    yield "bad_addresses_freed", with_stream(2, numbers(0, 0, 0))
    yield "bad_addresses_early_end", with_stream(2, numbers(0, 0))
    yield "bad_addresses_late_end", with_stream(2, numbers(0, 0, 1, 1))
    yield "bad_times_early_end", with_stream(4, numbers(1))
    yield "bad_times_late_end", with_stream(4, numbers(1, 1, 1))
    yield "bad_usable_late_end", with_stream(5, numbers(1, 1))
    # Index, totals.
    yield "bad_index_cut", head + good + section(b"INDX", numbers(2, 45))
    yield "bad_totals_flag", head + good + section(b"TOTL", numbers(2))
    yield "bad_totals_kinds", head + good + section(b"TOTL", numbers(0, 2, 0, 1, 8, 1, 8, 1, 0, 0, 1, 0, 26))
    repaired = numbers(0, 2, 0, 1, 8, 1, 8, 1, 0, 0, 1, 3, 25, *[0] * 25)
    yield "bad_totals_repairs", head + good + section(b"TOTL", repaired + numbers(2, 3, 1))
    yield "bad_totals_repair_kinds", head + good + section(b"TOTL", repaired + numbers(65))
    # The .cmt of 2019.
    yield "legacy", bytes.fromhex("88 80 81 90 81 81 80 81")
    yield "legacy_gap", bytes.fromhex("88 80 7f b3 90 81 81 80 81")
    yield "legacy_cut", bytes.fromhex("88 80 81 90 81 81 80")
    yield "legacy_bad", bytes.fromhex("88 80 81 80 85")


folder = Path(sys.argv[1])
for name, data in files():
    (folder / f"{name}.cmt").write_bytes(data)
