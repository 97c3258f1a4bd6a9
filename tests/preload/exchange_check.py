"""exchange_check.py TRACE STATED: each thread ended the blocks that it says, each paired with its own allocation."""

import sys

from trace import Trace

FIRST_SIZE, MARK_SIZE = 2000, 500

trace = Trace(sys.argv[1])
assert trace.unseen == 0 and trace.end == '#cmt end=complete', (trace.unseen, trace.end)
size_of, number_of, ended = {}, {}, {}
for event in trace.events:
    if event.ends():
        ended.setdefault(event.thread, []).append(size_of[event.given[1]])
    if event.result:
        size_of[event.result[1]] = event.bytes()
        if event.kind == 'malloc' and MARK_SIZE <= event.bytes() < MARK_SIZE + 8 and event.thread:
            number_of[event.bytes() - MARK_SIZE] = event.thread
stated = {}
for line in open(sys.argv[2], encoding='ascii'):
    thread, size = map(int, line.split())
    stated.setdefault(thread, []).append(size)
assert len(number_of) == len(set(number_of.values())) == len(stated) == 8, number_of
for thread, sizes in stated.items():
    seen = [size for size in ended[number_of[thread]] if size >= FIRST_SIZE]
    assert seen == sizes, f'thread {thread}: {len(seen)} ended, {len(sizes)} stated'
assert trace.count('thread_start') == trace.count('thread_exit') == 8
print(len(trace.events), 'events')
