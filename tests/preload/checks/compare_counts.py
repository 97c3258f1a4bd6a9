"""compare_counts.py FOLDER: each trace's calls by kind and bytes equal what the shim behind the tracer counted."""

import pathlib
import struct
import sys

from trace import Trace

KINDS = ('malloc free calloc realloc reallocarray aligned_alloc posix_memalign memalign valloc pvalloc').split()

folder = pathlib.Path(sys.argv[1])
traces = sorted(path for path in folder.glob('*.trace'))
assert traces, 'no traces'
total = 0
for path in traces:
    trace = Trace(path)
    counted = path.with_suffix('.count')
    raw = counted.read_bytes()[:16 * len(KINDS)] if counted.exists() else bytes(16 * len(KINDS))
    numbers = struct.unpack(f'<{2 * len(KINDS)}Q', raw)
    for i, kind in enumerate(KINDS):
        events = [event for event in trace.events if event.kind == kind]
        assert len(events) == numbers[2 * i], f'{path.name}: {len(events)} lines of {kind}, {numbers[2 * i]} calls'
        asked = sum(event.bytes() for event in events) % 2**64
        assert asked == numbers[2 * i + 1], f'{path.name}: {kind} of {asked} bytes, {numbers[2 * i + 1]} asked for'
    total += len(trace.events)
for path in folder.glob('*.count'):
    assert path.with_suffix('.trace').exists(), f'{path.name} without a trace'
print(len(traces), 'traces,', total, 'events agree')
