"""Call stacks: their definitions, the numbers of events' stacks, and their lines in a text (text.md). See
decoder.py."""
from __future__ import annotations

from dataclasses import dataclass

from .layout import (FRAME_NAMES, MASK, POOL_STACK_STREAM, STACK_DEFINITIONS, STACK_STREAM, Cursor, decompress,
                        unzigzag)
from .streams import ALLOCATES, POOL_FREE, POOL_MALLOC, RELEASES

# ## Call stacks

TIME_LIMIT = 2**62


@dataclass
class Module:
    path: bytes
    build_id: bytes
    begin: int
    end: int
    bias: int
    loaded: int | None
    gone: int | None
    last_address: int


# "0: unknown; else the time + 1, in ns as times are, below 2^62"
def time(cursor):
    value = cursor.varint("a module's time", TIME_LIMIT)
    return value - 1 if value else None


class Stacks:
    """The tree of stacks. The first entry of each list has the number 0."""

    def __init__(self):
        self.modules = [Module(b"", b"", 0, 0, 0, None, None, 0)]
        self.frames = [(0, 0, 0)]  # (module, address, exact)
        self.nodes = [(0, 0)]  # (parent, frame)
        self.stacks = [0]
        self.names = {}
        self.are_known = set()  # frames and nodes
        self.below = [[]]  # by frame: "the frames that were below it in a node"

    def decode(self, block, events):
        known = len(self.stacks) - 1
        if STACK_DEFINITIONS in block.raw:
            self.define(block.raw[STACK_DEFINITIONS], block.events)
        if FRAME_NAMES in block.raw:
            self.name_frames(block.raw[FRAME_NAMES])
        self.numbers(block.raw.get(STACK_STREAM), events, known, ALLOCATES, RELEASES)
        cursor = block.raw.get(POOL_STACK_STREAM)
        if cursor:
            # "The number others counts the zeros of the stream of stacks in this block."
            others = cursor.varint()
            if others >= len(self.stacks) - known:
                cursor.fail("stacks that are not defined", 0)
            self.numbers(cursor, events, known + others, {POOL_MALLOC}, {POOL_FREE})

    def numbers(self, cursor, events, known, makes, ends):
        if not cursor:
            return
        # "rule is a varint: 1 or 3, the sum of properties of kinds. Each event of a kind that has one of them has a
        # value"
        rule, last = cursor.varint("the rule of the stacks", 255), 0
        kinds = (makes if rule & 1 else set()) | (ends if rule & 2 else set())
        for event in events:
            if event.kind not in kinds:
                continue
            # "0 for the next stack that this block defines. Any other v means the stack before (0 at the block's begin)
            # + unzigzag(v - 1). This stack has to be defined in an earlier block, or has had a 0 in this block."
            at, value = cursor.at, cursor.varint()
            if value == 0:
                known += 1
            last = known if value == 0 else last + unzigzag(value - 1)
            if not 0 <= last <= known < len(self.stacks):
                cursor.fail("a stack that is not defined", at)
            event.stack = self.stacks[last]
        cursor.end()

    # ### Stack definitions

    def define(self, cursor, events):
        # "count (module time)*count"
        self.unload(cursor)
        stacks = 0
        while not cursor.at_end():
            # "at most as many times as the block has events"
            stacks += 1
            if stacks > events:
                cursor.fail("more stacks than events")
            node, at = self.attachment(cursor), cursor.at
            for _ in range(cursor.varint("a stack's number of new nodes", len(cursor.data))):
                at_frame = cursor.at
                frame = self.frame(cursor, self.nodes[node][1])
                # "A node of frame 0 has no parent"
                if frame == 0 and node:
                    cursor.fail("a cut within a stack", at_frame)
                if ("node", node, frame) in self.are_known:
                    cursor.fail("a node that is there already", at_frame)
                # "nodes of stacks | 2^24"
                if len(self.nodes) > 2**24:
                    cursor.fail("more than 16777216 nodes of stacks", at_frame)
                self.are_known.add(("node", node, frame))
                self.nodes.append((node, frame))
                node = len(self.nodes) - 1
            # "with 0 new ones the attachment itself is, and is not 0"
            if node == 0:
                cursor.fail("a stack without frames", at)
            self.stacks.append(node)

    def unload(self, cursor):
        for _ in range(cursor.varint()):
            at, module = cursor.at, cursor.varint()
            if not 0 < module < len(self.modules):
                cursor.fail("a module that is not defined", at)
            self.modules[module].gone = time(cursor)

    # "Below 128: the one that is reached from the end of the stack defined last" "Else the newest node less (attachment -
    # 128)."
    def attachment(self, cursor):
        at, value = cursor.at, cursor.varint()
        if value >= 128:
            if value - 128 > len(self.nodes) - 1:
                cursor.fail("a node before the first", at)
            return len(self.nodes) - 1 - (value - 128)
        node = self.stacks[-1]
        for _ in range(value):
            if node == 0:
                cursor.fail("more frames go than the last stack has", at)
            node = self.nodes[node][0]
        return node

    def frame(self, cursor, parent_frame):
        at, rank = cursor.at, cursor.varint()
        below = self.below[parent_frame]
        if rank > len(below):
            cursor.fail("a frame that this caller does not call", at)
        # "The frame is the rank-th of the list of the parent's frame, from 1."
        if rank:
            return below[rank - 1]
        # "the frame is the newest less (distance - 1)"
        distance = cursor.varint()
        if distance > len(self.frames):
            cursor.fail("a frame before the first", at)
        frame = len(self.frames) - distance if distance else self.definition(cursor)
        # "After a rank of 0 the new node's frame is appended to that list"
        below.append(frame)
        return frame

    def definition(self, cursor):
        at, value = cursor.at, cursor.varint()
        exact, number = value & 1, value >> 1
        # "module above 0: that module + 1"
        if number > len(self.modules):
            cursor.fail("a module that is not defined", at)
        if number == 0:
            # "exact path build_id begin size bias loaded gone address"
            path = cursor.string("the length of a module's path", 65536)
            build_id = cursor.string("the length of a build id", 256)
            begin = cursor.varint()
            end = begin + cursor.varint() & MASK
            bias = begin - unzigzag(cursor.varint()) & MASK
            # "at first less the module's begin, or 0 for module 0"
            self.modules.append(Module(path, build_id, begin, end, bias, time(cursor), time(cursor), begin))
            number = len(self.modules)
        module = self.modules[number - 1]
        # "zigzag, less the address of the frame of the same module that was defined last"
        module.last_address = module.last_address + unzigzag(cursor.varint()) & MASK
        frame = (number - 1, module.last_address, exact)
        if frame in self.are_known:
            cursor.fail("a frame that is there already", at)
        self.are_known.add(frame)
        self.frames.append(frame)
        self.below.append([])
        return len(self.frames) - 1

    # ### Names

    def name_frames(self, cursor):
        for frame, functions in names(cursor, len(self.frames)).items():
            # "The section of names, if it is there, has the names of these frames too, and counts."
            self.names.setdefault(frame, functions)

    def end(self, section):
        """Takes and keeps the names of frames, and takes the modules that were unloaded."""
        cursor = names_content(section)
        self.unload(cursor)
        self.names = names(cursor)


# "a varint, the size of the names before compression, at most 2^28 | names, one frame"
def names_content(section):
    raw_size = section.header.varint("the size of the names", 2**28)
    cursor = Cursor(b"", section.body_offset, "names")
    cursor.data = decompress(section.body, raw_size, cursor)
    return cursor


def names_of(section):
    """The names alone, for a caller that has not read the blocks."""
    cursor = names_content(section)
    for _ in range(2 * cursor.varint()):
        cursor.varint()
    return names(cursor)


def names(cursor, frames=2**32):
    """A dictionary from frames to lists of (function, file, line)."""
    named, frame, places, texts, place = {}, 0, [], [], 0

    def text():
        at, number = cursor.at, cursor.varint()
        if number > len(texts):
            cursor.fail("a text that is not there", at)
        if number == 0:
            texts.append(cursor.bytes(cursor.varint()))
        return texts[number - 1]

    while not cursor.at_end():
        # "the frame's number less that of the frame named before (0 at first); above 0"
        at = cursor.at
        frame += cursor.varint("a step to a frame", 2**32 - 1)
        if not 0 < frame < frames:
            cursor.fail("a name of no frame", at)
        functions = []
        for _ in range(cursor.varint("a number of names", len(cursor.data))):
            # "They are numbered from 1 as they come; 0 is a new one, any other v the one before (0 at first) +
            # unzigzag(v - 1)"
            at, value = cursor.at, cursor.varint()
            if value == 0:
                places.append([text(), text(), 0])
            place = len(places) if value == 0 else place + unzigzag(value - 1)
            if not 0 < place <= len(places):
                cursor.fail("a place that is not there", at)
            # "zigzag, less the line that this place had last (0 at first)"
            at = cursor.at
            line = places[place - 1][2] + unzigzag(cursor.varint())
            if not 0 <= line < 2**32:
                cursor.fail("a line above its limit", at)
            places[place - 1][2] = line
            functions.append(tuple(places[place - 1]))
        named[frame] = functions[:256]
    return named
