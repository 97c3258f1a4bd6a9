#!/usr/bin/python3
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


ALLOCATES, RELEASES, NAMES, SIZES, COUNTS, ALIGNS, MAY_ALIGN, LABELS = (1 << bit for bit in range(8))
PAGES = NAMES + SIZES + COUNTS + ALIGNS


def touches(items):
    """malloc(8) = <1>, and touches with the code 1."""
    return numbers(2, 0, 1, 28, PAGES, 0, 1, 8 << 1) + items


AT, GONE = 0x1000, 0x2000  # addresses of a block that is made here, and of one that is not


def with_unknown_kinds():
    """A file of a later version, with all streams: a new kind for each effect that an event can have on blocks."""
    core = numbers(9)  # forms, all with codes of 4 bits: 0 to 8, reversed
    for form, *described in ((0,), (1,), (40 - 32 + 512, NAMES + SIZES, 2), (41 - 32 + 512, LABELS, 0), (42 - 32 + 512, ALLOCATES + SIZES + MAY_ALIGN, 1),
                             (42 - 32 + 512 + 256, ALLOCATES + SIZES + MAY_ALIGN, 1), (63 - 32 + 512, RELEASES + SIZES, 0),
                             (44 - 32 + 512 + 32, ALLOCATES + RELEASES + COUNTS + SIZES, 0),
                             (45 - 32 + 512 + 64, ALLOCATES + NAMES, 0)):
        core += numbers(form, *described, 4)

    def item(form, first=0):
        return numbers(first << 4 | int(f"{form:04b}"[::-1], 2))

    core += item(0, 8)                              # malloc(8) = <10>
    core += item(2, 1) + numbers(4096, 7, 7)        # names <10>
    core += item(2, 9) + numbers(4096, 7, 7)        # names <1>, which is not known and has no address
    core += item(3, 5) + b"hello"
    core += item(4, 24) + numbers(99)               # makes <11> of 24 bytes
    core += item(5, 40) + numbers(64, 99)           # makes <12> of 40 bytes, aligned to 64
    core += item(6, 2) + numbers(24)                # ends <11>
    core += item(7, 2 * 1) + numbers(16, 3)         # by delta from the one named last, <11>: makes <13> of <12>, 3 x 16 bytes
    core += item(8, 10)                             # names <4>, returns NULL
    core += item(1, 4)                              # free(<10>): it is still live
    core += item(1, 8)                              # free(<6>), which is not known
    addresses = numbers(0, 0, 512, AT, 512, AT + 32, 512, AT + 64, 1 + 512, AT + 128, GONE)
    times = numbers(*(1 + 2 * 5 for _ in range(11)))
    usable = numbers(*[1] * 4)
    file = file_header(numbers(1 + 2 + 4 + 16, 0))
    streams = [(each[0], len(each[1]), frame(each[1])) for each in ((1, core), (2, addresses), (4, times), (5, usable))]
    head = numbers(0, 11, 10, 0, 0, 0, 1, len(streams))
    for number, raw_size, data in streams:
        head += numbers(number, raw_size, len(data))
    offset = len(file)
    file += section(b"BLCK", head, b"".join(data for _, _, data in streams))
    index = len(file)
    file += section(b"INDX", numbers(1, offset << 1 | 1, 0, 10, 0))
    kinds = [0] * 64
    for kind, count in ((0, 1), (1, 2), (40, 2), (41, 1), (42, 2), (63, 1), (44, 1), (45, 1)):
        kinds[kind] = count
    totals = len(file)
    file += section(b"TOTL", numbers(0, 11, 0, 4, 120, 3, 72, 6, 1, 48, 1, 0, 64, *kinds))
    return file + section(b"TAIL", struct.pack("<QQ", index, totals))


def files():
    head, good = file_header(), block([(1, CORE)])
    whole = end(head + good)
    # These are not damaged: all are read.
    yield "skip_unknown_section", end(head + section(b"NEWS", b"header", b"body") + good + section(b"LAST"))
    yield "skip_unknown_stream", end(head + block([(40, b"?"), (1, CORE), (50, b"later")]))
    yield "skip_more_fields", end(file_header(numbers(0, 0) + b"more") + good, extra=b"more")
    yield "skip_unknown_kinds", with_unknown_kinds()
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
    yield "bad_version", file_header(version=3)
    sampled = numbers(16, 1, 7) + b"sampled"
    yield "bad_version_1_sampled", file_header(sampled + numbers(3) + b"100")
    yield "bad_version_2_full", file_header(version=2)
    yield "bad_version_2_interval", file_header(sampled + numbers(1) + b"0", version=2)
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
    yield "bad_core_form_bits", core_block(numbers(1, 1024, 1, 0))
    yield "bad_core_kind_traits", core_block(numbers(1, 514, 256, 0, 1))
    yield "bad_core_kind_contradiction", core_block(numbers(1, 514, RELEASES + NAMES, 0, 1))
    yield "bad_core_kind_operands", core_block(numbers(1, 514, 0, 17, 1))
    yield "bad_core_kind_cut", core_block(numbers(1, 514, SIZES))
    yield "bad_core_kind_null", core_block(numbers(1, 514 + 64, SIZES, 0, 1))
    yield "bad_core_touch_traits", core_block(numbers(1, 28, NAMES + SIZES, 0, 1))
    yield "bad_core_touch_no_block", core_block(touches(numbers(0 << 1 | 1, 0, 1, 4096)))
    yield "bad_core_touch_cut", core_block(touches(numbers(1 << 1 | 1, 0, 1)))
    yield "bad_core_next_run_traits", core_block(numbers(1, 513, NAMES + SIZES, 0, 1))
    yield "bad_core_next_run_no_block", core_block(numbers(2, 0, 1, 513, NAMES, 0, 1, 8 << 1, 0 << 1 | 1))
    yield "bad_core_pool", core_block(numbers(1, 515, MAY_ALIGN, 1, 1, 2 << 1))
    yield "bad_core_sampling_interval", core_block(numbers(1, 36 - 32 + 512, SIZES, 0, 1))
    yield "bad_core_unsample", core_block(numbers(1, 37 - 32 + 512, RELEASES, 0, 1))
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
    # Call stacks. The first of CORE's two events allocates.
    module = numbers(3) + b"app" + numbers(0, 0x1000, 0x1000, 0, 0, 0)
    one = numbers(0, 0, 1, 0, 0, 0) + module + numbers(2 * 5)  # no module went; a stack of one frame, at 0x1005

    def with_stacks(definitions, values=numbers(1, 0)):
        return head + block([(1, CORE), (6, values), (7, definitions)])

    yield "bad_stack_number", with_stacks(one, numbers(1, 1 + 2 * 2))
    yield "bad_stack_negative", with_stacks(one, numbers(1, 1 + 1))
    yield "bad_stack_new", with_stacks(one, numbers(3, 0, 0))
    yield "bad_stack_rule", with_stacks(one, numbers(256, 0))
    yield "bad_stacks_early_end", with_stacks(one, numbers(3, 0))
    yield "bad_stacks_late_end", with_stacks(one, numbers(1, 0, 1))
    yield "bad_definitions_cut", with_stacks(one[:-1])
    yield "bad_definitions_unloaded", with_stacks(numbers(1, 1, 5) + one[1:])
    yield "bad_definitions_time", with_stacks(numbers(0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 0, 2**62 + 1))
    yield "bad_definitions_path", with_stacks(numbers(0, 0, 1, 0, 0, 0, 65537))
    yield "bad_definitions_build_id", with_stacks(numbers(0, 0, 1, 0, 0, 0, 0, 257))
    yield "bad_definitions_module", with_stacks(numbers(0, 0, 1, 0, 0, 2 << 1, 0))
    yield "bad_definitions_rank", with_stacks(numbers(0, 0, 1, 1))
    yield "bad_definitions_distance", with_stacks(numbers(0, 0, 1, 0, 2))
    yield "bad_definitions_attachment", with_stacks(numbers(0, 1, 1, 0, 1))
    yield "bad_definitions_node", with_stacks(numbers(0, 129, 1, 0, 1))
    yield "bad_definitions_count", with_stacks(numbers(0, 0, 99, 0, 1))
    yield "bad_definitions_empty", with_stacks(numbers(0, 0, 0))
    yield "bad_definitions_cut_inside", with_stacks(one + numbers(0, 1, 0, 2))
    yield "bad_definitions_same_node", with_stacks(one + numbers(1, 1, 1))
    yield "bad_definitions_same_frame", with_stacks(one + numbers(0, 1, 0, 0, 2 << 1, 0))
    yield "bad_definitions_too_many", with_stacks(one + numbers(0, 0) * 2)
    def with_names(raw):
        return (head + block([(1, CORE), (6, numbers(1, 0)), (7, one)]) +
                section(b"NAME", numbers(len(raw)), frame(raw)))

    main = numbers(0, 0, 4) + b"main" + numbers(0, 5) + b"app.c" + numbers(2 * 12)
    yield "bad_names_cut", with_names(numbers(0, 1, 1) + main[:-1])
    yield "bad_names_frame", with_names(numbers(0, 0, 1) + main)
    yield "bad_names_place", with_names(numbers(0, 1, 2) + main + numbers(1 + 2, 0))
    yield "bad_names_text", with_names(numbers(0, 1, 1, 0, 0, 1) + b"f" + numbers(2, 0))
    yield "bad_names_line", with_names(numbers(0, 1, 1) + main[:-1] + numbers(1))
    yield "bad_names_unloaded", with_names(numbers(1, 2, 0))
    yield "bad_names_size", head + section(b"NAME", numbers(2**28 + 1))
    # Names of an interpreter's lines.
    line = numbers(0, 0, 1, 0, 0, 0, 8) + b"[python]" + numbers(0, 0, 0, 0, 0, 0, 2 * 1)

    def with_frame_names(raw):
        return head + block([(1, CORE), (6, numbers(1, 0)), (7, line), (10, raw)])

    yield "cut_interpreter", with_frame_names(numbers(1, 1) + main)
    yield "bad_frame_names_frame", with_frame_names(numbers(2, 1) + main)
    yield "bad_frame_names_cut", with_frame_names(numbers(1, 1) + main[:-1])
    # Index, totals.
    yield "bad_index_cut", head + good + section(b"INDX", numbers(2, 45))
    yield "bad_totals_flag", head + good + section(b"TOTL", numbers(2))
    yield "bad_totals_kinds", head + good + section(b"TOTL", numbers(0, 2, 0, 1, 8, 1, 8, 1, 0, 0, 1, 0, 65))
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
