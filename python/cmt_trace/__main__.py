"""Prints a .cmt as text.

    python3 -m cmt_trace FILE.cmt               prints the canonical text (text.md)
    python3 -m cmt_trace --sections FILE.cmt    prints the sections, the streams and their sizes
    python3 -m cmt_trace --check FILE.cmt       also verifies parts that a reader need not: tables of keyframes, index, totals
"""
import signal
import sys

from .decoder import STRETCH, Decoder
from .layout import HEADER_LINES, STREAM_NAMES, CutOff, FormatError, block_header, file_header, sections
from .text import StackLines, header_text, line


def print_text(decoder, path):
    out = sys.stdout.buffer
    # "16 the text form has header lines (set if there is metadata)"
    lines = decoder.header.flags & HEADER_LINES or decoder.header.metadata
    if lines:
        out.write(header_text(decoder.header))
    stacks = StackLines(decoder.stacks)
    for events in decoder.blocks():
        for event in events:
            out.write(stacks.before(event) + line(event))
    out.write(stacks.end())
    out.flush()
    if decoder.unknown_kinds:
        print(f"cmt_trace: {decoder.events} events, {decoder.unknown_kinds} repairs: {decoder.unknown_kinds} events of "
              "unknown kinds replaced", file=sys.stderr)
    if not decoder.whole:
        decoder.broke_off = True
    if decoder.broke_off:
        print(f"cmt_trace: warning: {path}: the trace breaks off; all that is whole was read", file=sys.stderr)
    if lines:
        for stretch in decoder.totals["stretches"] if decoder.totals else []:
            out.write(b"#stretch %s\n" % " ".join(f"{name}={ns}" for name, ns in zip(STRETCH, stretch)).encode())
        if decoder.totals and decoder.totals["samples lost"]:
            out.write(b"#cmt samples_lost=%d\n" % decoder.totals["samples lost"])
        by_kind = dict(decoder.totals["repairs by kind"]) if decoder.totals else {}
        if decoder.unknown_kinds:
            by_kind["unknown_kind"] = by_kind.get("unknown_kind", 0) + decoder.unknown_kinds
        repairs = decoder.unknown_kinds + (decoder.totals["repairs"] if decoder.totals else 0)
        if repairs:
            out.write(b"#cmt repairs=%d\n" % repairs)
            for kind, count in by_kind.items():
                out.write(b"#cmt repairs_%s=%d\n" % (kind.encode(), count))
        out.write(b"#cmt end=truncated\n" if decoder.broke_off else b"#cmt end=complete\n")


def print_sections(data):
    header = file_header(data)
    print(f"{0:#10x} file header, {header.size} bytes, flags {header.flags}, {len(header.metadata)} metadata")
    try:
        for section in sections(data, header.size):
            size = section.end - section.offset
            print(f"{section.offset:#10x} {section.type.decode('latin-1')}, {size} bytes", end="")
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
        print("Usage: python3 -m cmt_trace [--sections] [--check] FILE.cmt", file=sys.stderr)
        sys.exit(2)
    path = paths[0]
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # ends quietly where the reader, such as head, has enough
    try:
        with open(path, "rb") as file:
            data = file.read()
        if "--sections" in options:
            print_sections(data)
        else:
            print_text(Decoder(data, "--check" in options), path)
    except FormatError as error:
        sys.stdout.flush()
        print(f"cmt_trace: {path}: {error}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        print(f"cmt_trace: {path}: {error.strerror}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
