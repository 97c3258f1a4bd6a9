#!/usr/bin/python3
"""What cmtwatch shows on a terminal, through a terminal that understands the few control sequences that it uses.

    live.py PID PROGRAM...: the process to watch, and how cmtwatch is called.
"""

import fcntl
import os
import re
import select
import signal
import struct
import sys
import termios

BARS = "▁▂▃▄▅▆▇█"


class Terminal:
    """A command on a terminal of so many rows and columns."""

    def __init__(self, command, rows=6, columns=60, echoes=True):
        self.rows, self.columns = rows, columns
        self.lines, self.row, self.column = [""], 0, 0
        self.text = ""
        self.master, slave = os.openpty()
        self.resize(rows, columns)
        if not echoes:
            settings = termios.tcgetattr(slave)
            settings[3] &= ~termios.ECHO
            termios.tcsetattr(slave, termios.TCSANOW, settings)
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for fd in range(3):
                os.dup2(slave, fd)
            os.execvp(command[0], command)
        os.close(slave)

    def resize(self, rows, columns):
        self.rows, self.columns = rows, columns
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self):
        """Takes what the command has written; False at its end."""
        select.select([self.master], [], [])
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.text += data.decode("utf-8", "surrogateescape")
        while self.text:
            sequence = re.match(r"\x1b\[(\d*)([A-Za-z])", self.text)
            if self.text[0] == "\x1b" and not sequence:
                break  # the rest of it is to come
            if sequence:
                self.text = self.text[sequence.end():]
                self.control(sequence[2], int(sequence[1] or 0))
            else:
                self.put(self.text[0])
                self.text = self.text[1:]
        return data != b""

    def put(self, character):
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self.row += 1
            self.lines += [""] * (self.row + 1 - len(self.lines))
        elif character != "\a":
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[:self.column] + character + line[self.column + 1:]
            self.column += 1
            assert self.column < self.columns, "a line that is too long: " + self.lines[self.row]

    def control(self, what, number):
        if what == "A":
            self.row -= number
            assert self.row >= 0, "drawn above the first line"
        elif what == "K":
            self.lines[self.row] = self.lines[self.row][:self.column]
        elif what == "J":
            if number == 2:
                self.lines, self.row = [""], self.row
                self.lines *= self.row + 1
            else:
                self.lines[self.row] = self.lines[self.row][:self.column]
                del self.lines[self.row + 1:]
        elif what == "H":
            self.row = self.column = 0
        else:
            raise AssertionError("an unknown control sequence: " + what)

    def wait_for(self, condition, what):
        while not condition(self.lines):
            assert self.read(), f"ended before {what}: {self.lines}"

    def end(self):
        """The exit status."""
        while self.read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def is_sparkline(line, least=1):
    return len(line) >= least and all(character in BARS for character in line)


def check_view(command, header, last):
    """Columns in place, over the terminal's width; a smaller terminal; Ctrl-C, and nothing is left but a last line."""
    terminal = Terminal(command)
    terminal.wait_for(lambda lines: len(lines) >= 2 and re.search(header, lines[0]) and is_sparkline(lines[1], 40),
                      "40 columns")
    assert sum(is_sparkline(line) for line in terminal.lines) == 1, terminal.lines
    terminal.resize(5, 30)
    terminal.wait_for(lambda lines: len(lines) >= 2 and len(lines[0]) == 29 and is_sparkline(lines[1]) and
                      len(lines[1]) == 29, "a smaller view")
    terminal.resize(5, 250)
    terminal.wait_for(lambda lines: is_sparkline(lines[1], 30), "a larger view")
    os.write(terminal.master, b"\x03")
    status = terminal.end()
    left = [line for line in terminal.lines if line]
    assert status == 0, f"exit {status}: {left}"
    assert len(left) == 1 and re.match(last, left[0]), left


def check_tree(command):
    """With -v the processes stand below, as many as there are rows for."""
    terminal = Terminal(command, rows=4, columns=60)
    terminal.wait_for(lambda lines: len(lines) == 3 and is_sparkline(lines[1]) and re.search(r"iB +\d+  \S", lines[2]),
                      "a tree")
    os.kill(terminal.pid, signal.SIGTERM)
    terminal.resize(4, 250)  # what follows has room
    assert terminal.end() == 0
    assert len([line for line in terminal.lines if line]) == 1, terminal.lines


def check_command(command, last):
    """Beside a command one line, taken away at the end; what the command says stays."""
    terminal = Terminal(command, rows=6, columns=250, echoes=False)
    terminal.wait_for(lambda lines: "said" in lines[0], "the command's word")
    terminal.wait_for(lambda lines: any(character in BARS for character in lines[-1]), "a line of columns")
    assert len(terminal.lines) == 2, terminal.lines
    os.write(terminal.master, b"go\n")
    status = terminal.end()
    assert status == 7, f"exit {status}"
    assert re.search(last, terminal.lines[-2]), terminal.lines


pid, program = sys.argv[1], sys.argv[2:]
peak = r"peak [0-9.]+ [KM]iB "
get = program + ["get", "-w", "--metric=rss", "--interval=1ms", "--max-cost=100"]
record = program + ["record", "--interval=1ms", "--max-cost=100", "--measure=statm"]
check_view(get + [pid], r"[0-9.]+ [KM]iB rss, " + peak + "at ", peak + "rss at .* samples")
check_view(record + ["-o", "live.db", pid], r"[0-9.]+ [KM]iB rss, 1 process, ", peak + "rss at .* moments; recording took")
check_tree(get + ["-r", "-v", pid])
asks = ["--", "sh", "-c", "echo said; read -r word; exit 7"]
check_command(program + ["run", "-w", "--metric=rss", "--interval=1ms", "--max-cost=100"] + asks, peak)
check_command(record + ["-o", "command.db"] + asks, peak + "rss")
