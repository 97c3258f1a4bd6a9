#!/usr/bin/python3
"""A process and its child with memory whose sizes are known: they share some, and each has some of its own.

    holder.py SHARED_MB PARENT_MB CHILD_MB

Prints the two pids once everything is touched, and lives until its standard input ends.
"""

import mmap
import os
import sys

MB = 1_000_000


def held(megabytes):
    """Private memory, touched."""
    memory = mmap.mmap(-1, megabytes * MB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    touch(memory)
    return memory


def touch(memory):
    for at in range(0, len(memory), 4096):
        memory[at] = 1


shared_mb, parent_mb, child_mb = map(int, sys.argv[1:])
shared = mmap.mmap(-1, max(1, shared_mb * MB), flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
touch(shared)
ready, say_ready = os.pipe()
child = os.fork()
if child == 0:
    for at in range(0, len(shared), 4096):
        assert shared[at] == 1
    own = held(child_mb)
    os.write(say_ready, b"x")
    os.close(say_ready)
    sys.stdin.read()
    os._exit(0)
own = held(parent_mb)
os.read(ready, 1)
os.write(1, f"{os.getpid()} {child}\n".encode())  # at once, which print() does not promise
sys.stdin.read()
os.waitpid(child, 0)
