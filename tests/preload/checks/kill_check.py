"""kill_check.py VICTIM FIRST LAST: runs the victim under the tracer ($TRACER) once for each seed from FIRST to LAST, kills
it at a moment that the seed chooses, and compares its trace with what it counted itself: each thread's calls that had
returned are all there, and at most the one that had begun beside them. Odd seeds record text, even ones .cmt."""

import mmap
import os
import random
import re
import struct
import subprocess
import sys
import time

from await_closed import await_closed

SIZE_STEP, COUNT_BYTES = 10000, 64
CALL = re.compile(r'(?:malloc\((\d+)\)|realloc\([^,]*, (\d+)\)|free\([^)]*\))(?: = \S+)?(?: thread=(\d+))?')


def calls_by_name(path):
    """How many calls the trace has of each thread, by the name that its sizes give it."""
    text = subprocess.run(['trace2cmt', '--to=text', path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    lines = text.stdout.decode().splitlines()
    assert lines[-1].startswith('#cmt end=complete'), f'{path}: ends with {lines[-1]!r}'
    calls, name = {}, {}
    for line in lines:
        match = CALL.match(line)
        if not match:
            continue
        thread = int(match[3] or 0)
        calls[thread] = calls.get(thread, 0) + 1
        size = int(match[1] or match[2] or 0)
        if thread and size >= SIZE_STEP:
            assert name.setdefault(thread, size // SIZE_STEP - 1) == size // SIZE_STEP - 1, line
    return {name[thread]: count for thread, count in calls.items() if thread in name}


def kill_one(victim, seed):
    moment = random.Random(seed)
    threads = moment.choice((1, 2, 4))
    ending = 'trace' if seed % 2 else 'cmt'
    path, counts = f'killed.{seed}.{ending}', f'counts.{seed}'
    with open(counts, 'w+b') as file:
        file.truncate(COUNT_BYTES * 64)
        environment = dict(os.environ, LD_PRELOAD=os.environ['TRACER'], CMTTRACE_OUT=path)
        process = subprocess.Popen([victim, counts, str(threads)], env=environment, stdout=subprocess.PIPE)
        assert process.stdout.read(1) == b'+', f'seed {seed}: did not start'
        time.sleep(moment.uniform(0, 0.02))
        process.kill()
        assert process.wait() == -9
        process.stdout.close()
        stated = mmap.mmap(file.fileno(), 0)
    await_closed(path)
    found = calls_by_name(path)
    for thread in range(threads):
        begun, done = struct.unpack_from('QQ', stated, COUNT_BYTES * thread)
        count = found.get(thread, 0)
        assert done <= count <= begun, f'{path}: thread {thread} did {done}, began {begun}; the trace has {count}'
    os.remove(path)
    os.remove(counts)
    return sum(found.values())


if __name__ == '__main__':
    total = sum(kill_one(sys.argv[1], seed) for seed in range(int(sys.argv[2]), int(sys.argv[3]) + 1))
    print(f'{int(sys.argv[3]) - int(sys.argv[2]) + 1} kills, {total} calls, none lost')
