"""Reads the traces of cmt (.cmt): events, call stacks, live blocks, metadata. README.md has examples.

    trace = cmt_trace.Trace("app.cmt")
    for event in trace:
        print(event.name, event.bytes(), [frame.function for frame in trace.stack(event)])
"""
from __future__ import annotations

from pathlib import Path
from typing import Iterable, Iterator, NamedTuple

from .decoder import Decoder
from .decoder import totals as decoded_totals
from .layout import CutOff, FormatError, sections
from .stacks import Stacks
from .streams import KINDS, SAMPLING_INTERVAL, Event

__all__ = ["CutOff", "Event", "FormatError", "Frame", "Trace", "data_frame", "live_blocks"]


class Frame(NamedTuple):
    """A function of a call stack. A frame with inlined functions is several of them, the innermost first."""
    function: str | None  # None where the trace has no name for the frame
    file: str
    line: int  # 0: unknown
    module: str  # the path of the program or library
    address: int  # in the module's file
    cut: bool = False  # in place of callers that were not recorded; all else is empty


def text(value):
    return value.decode(errors="surrogateescape")


class Trace:
    """A trace of one process. Iterating begins at the first event each time, and yields an Event for each call.

    A damaged file raises FormatError, and one that breaks off CutOff, a kind of FormatError. The iterator raises them after
    it has yielded all events of the whole blocks before the place. A trace with a sample of the blocks is refused without
    `sampled=True`, since its sums need Event.weight(). `check` verifies also what reading needs not, such as the totals."""

    def __init__(self, path, sampled: bool = False, check: bool = False):
        self.path, self._check, self._stacks = str(path), check, Stacks()
        self._data = Path(path).read_bytes()
        with _Place(self.path):
            self._header = Decoder(self._data, check).header
            if self._header.sampled() and not sampled:
                raise FormatError(8, "a trace with a sample of the blocks; to read it: Trace(path, sampled=True)")
        self.metadata = {text(key): text(value) for key, value in self._header.metadata}

    @property
    def sampling_interval(self) -> int | None:
        """The mean number of bytes between two samples at the start. None: the trace has all blocks."""
        return self._header.sampled()

    @property
    def totals(self) -> dict | None:
        """The figures at the end of the file, such as "events" and "peak of live bytes". None if the trace breaks off."""
        try:
            with _Place(self.path):
                found = [each for each in sections(self._data, self._header.size) if each.type == b"TOTL"]
                return decoded_totals(found[-1].header) if found else None
        except CutOff:
            return None

    def __iter__(self) -> Iterator[Event]:
        with _Place(self.path):
            decoder, interval = Decoder(self._data, self._check), self._header.sampled() or 0
            for events in decoder.blocks():
                if len(decoder.stacks.nodes) >= len(self._stacks.nodes):
                    self._stacks = decoder.stacks
                for event in events:
                    interval = event.size if event.kind == SAMPLING_INTERVAL else interval
                    event.interval = interval
                    yield event
            if not decoder.whole:
                raise CutOff(decoder.cut_at)

    def stack(self, event: Event) -> list[Frame]:
        """The call stack of an event that this trace has yielded, the innermost function first. Empty: none was recorded."""
        stacks, node, frames = self._stacks, event.stack, []
        while node:
            node, number = stacks.nodes[node]
            if number == 0:
                frames.append(Frame(None, "", 0, "", 0, True))
                continue
            module, address, _ = stacks.frames[number]
            place = text(stacks.modules[module].path), address
            names = stacks.names.get(number, [(None, b"", 0)])
            frames += [Frame(name if name is None else text(name), text(file), line, *place) for name, file, line in names]
        return frames


class _Place:
    """Adds the path to an error of the format."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        if isinstance(error, FormatError):
            error.path = self.path


def live_blocks(events: Iterable[Event]) -> dict[int, Event]:
    """The blocks that live after the events, by tag: the event that made each. The blocks of pools are not in it.
    `live_blocks(itertools.islice(trace, 1000))` has those after 1,000 events."""
    live = {}
    for event in events:
        if event.ends():
            live.pop(event.old_tag, None)
        if event.tag:
            live[event.tag] = event
    return live


def data_frame(events: Iterable[Event]):
    """A DataFrame of pandas with a row for each event. Unknown times and usable sizes are <NA>."""
    import pandas

    numbers = ["thread", "size", "count", "alignment", "tag", "old_tag", "address", "old_address", "time", "usable", "stack",
               "pool_block"]
    columns = {name: [] for name in ["kind", *numbers, "bytes", "label", "pool"]}
    for event in events:
        for name in numbers:
            columns[name].append(getattr(event, name))
        columns["kind"].append(event.kind)
        columns["bytes"].append(event.bytes())
        columns["label"].append(text(event.label))
        columns["pool"].append(text(event.pool))
    kinds = pandas.Categorical.from_codes(columns["kind"], [name or f"kind {i}" for i, name in enumerate(KINDS)])
    columns["kind"] = kinds.remove_unused_categories()
    for name in [*numbers, "bytes"]:
        columns[name] = pandas.array(columns[name], dtype="UInt64") if name in ("time", "usable") else pandas.Series(
            columns[name], dtype="uint64")
    return pandas.DataFrame(columns)
