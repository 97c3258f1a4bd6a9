"""A command on a terminal that a test can look at: pyte's, with a scrollback."""

import fcntl
import os
import select
import signal
import struct
import termios
import time

import pyte

BARS = "▁▂▃▄▅▆▇█"


class Screen(pyte.HistoryScreen):
    """Behaves as terminals do where pyte 0.8 differs from them."""

    def __init__(self, columns, rows):
        super().__init__(columns, rows, history=10000)
        self.saved = None

    def set_margins(self, top=None, bottom=None):
        if top is None:  # of a new size
            super().set_margins()
        else:
            super().set_margins(top or 1, bottom or self.lines)

    def save_cursor(self):
        super().save_cursor()
        self.saved = self.savepoints.pop()
        self.savepoints.clear()

    def restore_cursor(self):
        """To where it was, be it outside of the region or beyond a line that is full."""
        self.savepoints.append(self.saved)
        column, row = self.saved.cursor.x, self.saved.cursor.y
        super().restore_cursor()
        self.cursor.x, self.cursor.y = min(column, self.columns), min(row, self.lines - 1)
        super().save_cursor()
        self.saved = self.savepoints.pop()

    def resize_to(self, rows, columns):
        """Rows are added and taken away below, but the one with the cursor stays."""
        super().resize(columns=columns)
        self.set_margins()
        above = self.cursor.y
        while self.cursor.y >= rows:
            self.cursor.y = self.lines - 1
            self.index()
            above -= 1
            self.cursor.y = above
        for row in [row for row in self.buffer if row >= rows]:
            del self.buffer[row]
        self.lines = rows

    def text(self):
        """All lines that there are, from the first that was scrolled away."""
        rows = list(self.history.top) + [self.buffer[row] for row in range(self.lines)]
        lines = ["".join(row[column].data for column in range(self.columns)).rstrip() for row in rows]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def shown(self):
        """Those that there is room for, without the empty ones below."""
        lines = [line.rstrip() for line in self.display]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def last_row(self):
        return self.display[-1].rstrip()

    def scrolls_wholly(self):
        return self.margins is None or (self.margins.top, self.margins.bottom) == (0, self.lines - 1)


class Terminal:
    """A command on a terminal of so many rows and columns. What is typed is not shown unless it `echoes`."""

    def __init__(self, command, rows=6, columns=60, echoes=False, term="xterm"):
        self.screen = Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.written = b""
        self.master, slave = os.openpty()
        self.set_size(rows, columns)
        settings = termios.tcgetattr(slave)
        settings[3] |= termios.NOFLSH  # Ctrl-C would throw away what nobody has read, also the half of a drawing
        if not echoes:
            settings[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, settings)
        environment = dict(os.environ, TERM=term)
        if term is None:
            del environment["TERM"]
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for fd in range(3):
                os.dup2(slave, fd)
            os.execvpe(command[0], command, environment)
        os.close(slave)

    def set_size(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, rows, columns):
        self.screen.resize_to(rows, columns)
        self.set_size(rows, columns)

    def type(self, keys):
        os.write(self.master, keys)

    def send(self, name):
        os.kill(self.pid, getattr(signal, name))

    def read(self):
        """Takes what the command has written; False at its end."""
        select.select([self.master], [], [])
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.written += data
        self.stream.feed(data)
        return data != b""

    def wait_for(self, condition, what):
        """Not for ever: ctest would end the test without a word."""
        give_up = time.monotonic() + 240
        while not condition(self.screen):
            assert time.monotonic() < give_up, f"still not after 240 s: {what}: {self.screen.text()}"
            assert self.read(), f"ended before {what}: {self.screen.text()}"

    def end(self):
        """The exit status."""
        while self.read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
