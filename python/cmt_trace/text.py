"""Writes header lines, events and call stacks as text.md defines them. See decoder.py."""
import re

from .streams import ALIGNS, ALLOCATES, COUNTS, KINDS, LABELS, MAY_ALIGN, NAMES, POOL_FREE, POOL_MALLOC, RELEASES, SIZES


# Quotes, backslashes, and the characters that a terminal would obey.
WRITTEN_AS_ESCAPES = re.compile(
    rb'["\\\x00-\x1f\x7f]|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xaa-\xae]|\xe2\x81[\xa6-\xa9]')
NAMED_ESCAPES = {b'"': b'\\"', b"\\": b"\\\\", b"\t": b"\\t", b"\n": b"\\n", b"\r": b"\\r"}


def quoted(text):
    def escape(found):
        return NAMED_ESCAPES.get(found[0]) or b"".join(b"\\x%02x" % c for c in found[0])

    # The pieces with odd indexes are bytes that are not UTF-8.
    pieces = re.split("([\udc80-\udcff])", text.decode(errors="surrogateescape"))
    written = (b"\\x%02x" % (ord(piece) - 0xDC00) if i % 2 else WRITTEN_AS_ESCAPES.sub(escape, piece.encode())
               for i, piece in enumerate(pieces))
    return b'"' + b"".join(written) + b'"'


# "A value is written bare if possible, else as a string."
def value_text(value):
    bare = value and all(33 <= c <= 126 and c not in b'"#' for c in value)
    return value if bare else quoted(value)


def header_text(header):
    # "A decoder that prints a sampled trace for people begins with #cmt text=2, which no reader accepts."
    return b"#cmt text=%d\n" % (1 if header.sampled() is None else 2) + b"".join(b"#cmt %s=%s\n" % (key, value_text(value)) for key, value in header.metadata)


def block_text(address, tag):
    if tag == 0:
        return "0"
    return f"{address:x}<{tag}>" if address else f"<{tag}>"


def line(event):
    name = KINDS[event.kind]
    arguments = [block_text(event.old_address, event.old_tag)] if event.kind in RELEASES | NAMES else []
    arguments += [block_text(0, event.pool_block)] if event.kind == POOL_FREE else []
    arguments += [str(event.alignment)] if event.kind in ALIGNS else []
    arguments += [str(event.count)] if event.kind in COUNTS else []
    arguments += [str(event.size)] if event.kind in SIZES else []
    arguments += [f"align={event.alignment}"] if event.kind in MAY_ALIGN and event.alignment else []
    arguments += ["nothrow"] if name.endswith("_nothrow") else []
    if name.startswith("operator_"):
        name = "operator " + name.split("_")[1] + ("[]" if "_array" in name else "")
    text = f"{name}({', '.join(arguments)}".encode() + (quoted(event.label) if event.kind in LABELS else b"") + b")"
    if event.kind in (POOL_MALLOC, POOL_FREE):
        text = text[:-1] + b", " + quoted(event.pool) + b")"
    if event.kind == POOL_MALLOC:
        text += f" = {block_text(0, event.pool_block)}".encode()
    if event.kind in ALLOCATES:
        text += f" = {block_text(event.address, event.tag)}".encode()
    for key, value in (("thread", event.thread or None), ("time", event.time), ("usable", event.usable),
                       ("stack", event.stack or None)):
        text += f" {key}={value}".encode() if value is not None else b""
    return text + b"\n"


# "A definition is before the first event that needs it. Its numbers count from 1 in the order of the lines"
class StackLines:
    def __init__(self, stacks):
        self.stacks = stacks
        self.nodes, self.frames, self.modules = {0: 0}, {0: 0}, {0: 0}
        self.named = set()

    def before(self, event):
        """The lines that an event's stack needs; changes the event's stack to the number in the text."""
        lines, path, node = [], [], event.stack
        while node not in self.nodes:
            path.append(node)
            node = self.stacks.nodes[node][0]
        for node in reversed(path):
            parent, frame = self.stacks.nodes[node]
            lines += self.frame(frame)
            self.nodes[node] = len(self.nodes)
            lines.append(b"#node %d parent=%d frame=%d\n" % (self.nodes[node], self.nodes[parent], self.frames[frame]))
        event.stack = self.nodes[event.stack]
        return b"".join(lines)

    def frame(self, frame):
        if frame in self.frames:
            return []
        number, address, exact = self.stacks.frames[frame]
        lines = self.module(number)
        self.frames[frame] = len(self.frames)
        lines.append(b"#frame %d module=%d address=%x" % (self.frames[frame], self.modules[number], address) +
                     b" exact=1" * exact + b"\n")
        return lines + self.name(frame)

    # "the names of a frame directly after the frame"
    def name(self, frame):
        if frame in self.named or frame not in self.stacks.names:
            return []
        self.named.add(frame)
        return [b"#name %d function=%s" % (self.frames[frame], value_text(function)) +
                (b" file=" + value_text(file) if file else b"") + (b" line=%d" % line if line else b"") + b"\n"
                for function, file, line in self.stacks.names[frame]]

    def module(self, number):
        if number in self.modules:
            return []
        module, self.modules[number] = self.stacks.modules[number], len(self.modules)
        return [b"#module %d begin=%x end=%x bias=%x" % (self.modules[number], module.begin, module.end, module.bias) +
                (b" build_id=" + module.build_id.hex().encode() if module.build_id else b"") +
                (b" loaded=%d" % module.loaded if module.loaded is not None else b"") +
                b" path=" + value_text(module.path) + b"\n"]

    def end(self):
        """The lines that are known only at the end."""
        late = [line for frame in list(self.frames) for line in self.name(frame)]
        return b"".join(late) + b"".join(b"#unloaded %d time=%d\n" % (text, self.stacks.modules[number].gone)
                        for number, text in self.modules.items() if self.stacks.modules[number].gone is not None)
