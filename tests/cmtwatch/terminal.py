#!/usr/bin/python3
"""Uses a program on a terminal of 30 rows and 100 columns by keys, and complains if it does not show what is expected.

    terminal.py 'STEP; STEP; ...' COMMAND [ARGUMENT]...

A step is `see TEXT` (wait until the program has written it), `key BYTES` (as Python writes them), `size ROWS COLUMNS`,
`signal NAME`, or `exit STATUS` (wait for the end). At the end the terminal has to be as it was before: its settings, the
cursor shown, the other page left.
"""

import fcntl
import os
import pty
import signal
import struct
import sys
import termios

steps = [step.strip().split(" ", 1) for step in sys.argv[1].split(";")]
pid, terminal = pty.fork()
if pid == 0:
    sys.stdin.readline()  # until the size is set
    os.execvp(sys.argv[2], sys.argv[2:])
seen = b""


def set_size(rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))


def read_more():
    global seen
    try:
        seen += os.read(terminal, 65536)
    except OSError:  # the program has closed it
        sys.exit(f"it ended before {steps[0]}: {seen!r}")


set_size(30, 100)
settings = termios.tcgetattr(terminal)
os.write(terminal, b"\n")
whole = b""
while steps:
    what, value = steps[0]
    if what == "see":
        while value.encode() not in seen:
            read_more()
        at = seen.index(value.encode()) + len(value)
        whole, seen = whole + seen[:at], seen[at:]
    elif what == "key":
        os.write(terminal, value.encode().decode("unicode_escape").encode())
    elif what == "size":
        set_size(*map(int, value.split()))
    elif what == "signal":
        os.kill(pid, getattr(signal, "SIG" + value))
    elif what == "exit":
        try:
            while True:
                seen += os.read(terminal, 65536)
        except OSError:
            pass
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert status == int(value), (status, seen)
        whole += seen
        after = termios.tcgetattr(terminal)
    steps.pop(0)
assert whole.endswith(b"\x1b[?25h\x1b[?1049l"), whole[-80:]
assert after == settings, (after, settings)
