"""await_closed.py FILE...: waits until no process has any of the files open: then nobody writes them any more."""

import contextlib
import os
import sys
import time


def entries(folder):
    """A folder's names; none where it is gone or not ours."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def open_files():
    """The files that any process has open, and those processes."""
    found = {}
    for process in filter(str.isdigit, os.listdir('/proc')):
        folder = f'/proc/{process}/fd'
        for fd in entries(folder):
            with contextlib.suppress(OSError):  # it was closed meanwhile; the others were not
                found.setdefault(os.readlink(f'{folder}/{fd}'), []).append(int(process))
    return found


def await_closed(*paths):
    paths = [os.path.realpath(path) for path in paths]
    closed = 0
    for _ in range(6000):
        # Twice: the first may have seen the supervisor without its files, and the collector, which has them, not yet.
        closed = 0 if open_files().keys() & set(paths) else closed + 1
        if closed == 2:
            return
        time.sleep(0.01)
    raise AssertionError(f'still open: {paths}')


if __name__ == '__main__':
    await_closed(*sys.argv[1:])
