"""await_closed.py FILE...: waits until no process has any of the files open: then nobody writes them any more."""

import os
import sys
import time


def open_files():
    """The files that any process has open, and those processes."""
    found = {}
    for process in filter(str.isdigit, os.listdir('/proc')):
        try:
            folder = f'/proc/{process}/fd'
            for fd in os.listdir(folder):
                found.setdefault(os.readlink(f'{folder}/{fd}'), []).append(int(process))
        except OSError:
            continue
    return found


def await_closed(*paths):
    paths = [os.path.realpath(path) for path in paths]
    for _ in range(6000):
        if not open_files().keys() & set(paths):
            return
        time.sleep(0.01)
    raise AssertionError(f'still open: {paths}')


if __name__ == '__main__':
    await_closed(*sys.argv[1:])
