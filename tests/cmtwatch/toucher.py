#!/usr/bin/python3
"""A process with 64 MiB of its own in small pages, of which it touches as much as the last line of its input states.

    toucher.py

Prints its pid when all memory is resident. Reads lines: a number N touches the first N MiB again and again, until the next line.
"""

import mmap
import os
import select
import sys

MIB = 1 << 20
memory = mmap.mmap(-1, 64 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(mmap.MADV_NOHUGEPAGE)


def touch(mebibytes):
    for at in range(0, mebibytes * MIB, mmap.PAGESIZE):
        memory[at] = 1


touch(64)
os.write(1, b"%d\n" % os.getpid())
size = 0
while True:
    if select.select([sys.stdin], [], [], None if size == 0 else 0)[0]:
        line = sys.stdin.readline()
        if not line:
            break
        size = int(line)
    touch(size)
