"""Index, totals, and a file as a whole.

Each module implements a part of format-spec/cmt.md:

    layout.py    conventions, file header, sections, block headers
    streams.py   kinds and streams
    stacks.py    call stacks
    origins.py   origins of live blocks
    decoder.py   index, totals, and a file as a whole
    text.py      the lines of text.md

This is a second decoder, written from the document alone and laid out in its order. A comment quotes the sentence of the
specification that the step below it follows. The decoder is meant to be read, and to test the document and the other
decoder. It keeps the whole file in memory and takes some seconds for a million events.
"""
import struct

from .layout import LIVE_BLOCKS, MASK, ORIGINS, CutOff, FormatError, block_header, file_header, sections
from .origins import Made, origins
from .stacks import Stacks, names_of
from .streams import Addresses, core, live_blocks, times_and_usable_sizes

# ## Index


# "Each block has four varints, each less the value of the block before (all 0 before the first): 1. (offset << 1) |
# keyframe, where offset is the difference of the sections' offsets in the file; 2. first event; 3. next tag; 4. time."
def index(cursor):
    entries, offset, first_event, next_tag, time = [], 0, 0, 0, 0
    for _ in range(cursor.varint()):
        value = cursor.varint()
        offset += value >> 1
        first_event, next_tag, time = (before + cursor.varint() & MASK for before in (first_event, next_tag, time))
        entries.append((offset, value & 1, first_event, next_tag, time))
    # "Then the offset of the section of names in the file, a varint, if there is one."
    return entries, 0 if cursor.at_end() else cursor.varint()


# ## Totals

TOTALS = ["broke off", "events", "refused", "blocks made", "bytes", "peak of live blocks", "peak of live bytes",
          "event of the peak", "live blocks", "live bytes", "threads", "repairs"]
REPAIRS = ["not_understood", "unmatched_free", "unmatched_realloc", "order_race", "double_allocation", "misfree",
           "contradiction", "unknown_kind", "overlap", "time_back", "other_address"]


STRETCH = ["elapsed", "ran", "waited", "held", "busy"]


def totals(cursor):
    stated = {name: cursor.varint("the flag of truncation", 1 if name == "broke off" else MASK) for name in TOTALS}
    # "The number of kinds (at most 64); and for each kind, by its value, the number of its events."
    stated["kinds"] = [cursor.varint() for _ in range(cursor.varint("the number of kinds", 64))]
    stated["kinds"] += [0] * (64 - len(stated["kinds"]))
    # "If there are repairs, their number by kind may follow:"
    stated["repairs by kind"] = {}
    if stated["repairs"] and not cursor.at_end():
        left = stated["repairs"]
        for kind in range(cursor.varint("the number of kinds of repairs", 64)):
            count = cursor.varint("a number of repairs", left)
            left -= count
            if count and kind < len(REPAIRS):
                stated["repairs by kind"][REPAIRS[kind]] = count
    # "If the next four bytes are `RUNS`, the stretches of the recording follow. First comes their number (at most
    # 65,536). Then each has the five times of the table, in ns, at most 2^62."
    stated["stretches"] = []
    if cursor.data[cursor.at:cursor.at + 4] == b"RUNS":
        cursor.bytes(4)
        for _ in range(cursor.varint("the number of stretches", 65536)):
            stated["stretches"].append([cursor.varint("a time of a stretch", 1 << 62) for _ in STRETCH])
    # "If the next four bytes are `LOST`, the number of samples follows that the recorder has lost"
    stated["samples lost"] = 0
    if cursor.data[cursor.at:cursor.at + 4] == b"LOST":
        cursor.bytes(4)
        stated["samples lost"] = cursor.varint()
    return stated


class Counted:
    """Counts the totals from the events."""

    def __init__(self):
        self.now = dict.fromkeys(TOTALS, 0)
        self.kinds, self.threads, self.live = [0] * 64, set(), {}

    def add(self, event):
        now = self.now
        now["events"] += 1
        now["refused"] += event.refused()
        self.kinds[event.stated_kind or event.kind] += 1
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
                "broke off": stated["broke off"], "repairs": stated["repairs"],
                "repairs by kind": stated["repairs by kind"], "stretches": stated["stretches"],
                "samples lost": stated["samples lost"]}


# ## A whole file


class Decoder:
    def __init__(self, data, check):
        self.data, self.check = data, check
        self.header = file_header(data)
        self.addresses, self.stacks, self.counted, self.made = Addresses(), Stacks(), Counted(), Made()
        self.events, self.state, self.time, self.index = 0, None, 0, []
        self.totals = self.totals_offset = self.index_offset = None
        self.names_offset, self.cut_at = 0, len(data)
        self.find_names()
        self.whole = self.broke_off = False
        self.unknown_kinds = 0

    # "A reader that can seek finds the section through the index. If the section is damaged, the events are good all
    # the same."
    def find_names(self):
        try:
            met = list(sections(self.data, self.header.size))
            if met and met[-1].type == b"TAIL":
                for section in met:
                    if section.type == b"NAME":
                        self.stacks.names = names_of(section)
        except FormatError:
            pass

    def blocks(self):
        """The events of each block of the stream. Afterwards, `whole` is true if the file has a tail."""
        try:
            for section in sections(self.data, self.header.size):
                if section.type == b"BLCK":
                    yield self.block(section)
                elif section.type == b"INDX":
                    self.index_offset = section.offset
                    if index(section.header) != (self.index, self.names_offset) and self.check:
                        raise FormatError(section.offset, "the index differs from the sections met")
                elif section.type == b"NAME":
                    self.names_offset = section.offset
                    self.stacks.end(section)
                elif section.type == b"TOTL":
                    self.end_totals(section)
                elif section.type == b"TAIL":
                    self.whole = True
                    # "nothing after them"
                    if section.end != len(self.data):
                        raise FormatError(section.end, "bytes after the tail")
                    # "two u64: offset of the index section, offset of the totals section."
                    stated = struct.unpack("<QQ", section.header.bytes(16))
                    if self.check and stated != (self.index_offset, self.totals_offset):
                        raise FormatError(section.offset, "the tail differs from the sections met")
                # "A reader skips a section of a type that it does not know"
                #
                # "the input ends inside a section, or without a tail | returns all whole blocks, reports that the
                # trace breaks off"
        except CutOff as cut:
            self.cut_at = cut.offset

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
            if self.check and ORIGINS in block.raw and origins(block, table, self.stacks.stacks) != self.made.state():
                raise FormatError(section.offset, "the origins differ from the running state")
        events, self.state = core(block, self.header.sampled() is not None)
        self.addresses.decode(block, events)
        self.index.append((block.offset, block.keyframe, block.first_event, block.next_tag, block.time))
        self.time = times_and_usable_sizes(block, events)
        self.stacks.decode(block, events)
        self.events += len(events)
        self.unknown_kinds += sum(event.stated_kind != 0 for event in events)
        if self.check:
            for event in events:
                self.counted.add(event)
                self.made.add(event)
        return events

    def end_totals(self, section):
        self.totals, self.totals_offset = totals(section.header), section.offset
        self.broke_off = self.totals["broke off"] == 1
        if self.check:
            for name, value in self.counted.all(self.totals).items():
                if self.totals[name] != value:
                    raise FormatError(section.offset, f"totals: {name} is {self.totals[name]}, counted {value}")
