#!/usr/bin/python3
"""Checks the views of cmtwatch on a terminal of its own.

    live.py PID PROGRAM...: the process to watch, and how cmtwatch is called.
"""

import re
import sys

from screen import BARS, Terminal


def is_sparkline(line, least=1):
    return len(line) >= least and all(character in BARS for character in line)


def check_view(command, header, last):
    """Columns in place, over the terminal's width; a smaller terminal; Ctrl-C, and nothing is left but a last line."""
    terminal = Terminal(command, echoes=True)

    def shows(condition):
        lines = terminal.screen.shown()
        return len(lines) == 2 and re.search(header, lines[0]) and is_sparkline(lines[1]) and condition(*lines)

    terminal.wait_for(lambda _: shows(lambda head, columns: len(columns) >= 40), "40 columns")
    terminal.resize(5, 30)
    terminal.wait_for(lambda _: shows(lambda head, columns: len(head) <= len(columns) == 29), "a smaller view")
    terminal.resize(5, 250)
    terminal.wait_for(lambda _: shows(lambda head, columns: len(columns) >= 30), "a larger view")
    terminal.type(b"\x03")
    status = terminal.end()
    left = [line for line in terminal.screen.shown() if line != "^C"]  # the kernel echoes it after it sent the signal
    assert status == 0, f"exit {status}: {left}"
    assert len(left) == 1 and re.match(last, left[0]), left


def check_tree(command):
    """With -v the processes are listed below, as many as there are rows for."""
    terminal = Terminal(command, rows=4, columns=60, echoes=True)

    def shows_tree(screen):
        lines = screen.shown()
        return len(lines) == 3 and is_sparkline(lines[1]) and re.search(r"iB +\d+  \S", lines[2])

    terminal.wait_for(shows_tree, "a tree")
    terminal.send("SIGTERM")
    terminal.resize(4, 250)  # what follows has room
    assert terminal.end() == 0
    assert len(terminal.screen.shown()) == 1, terminal.screen.shown()


pid, program = sys.argv[1], sys.argv[2:]
peak = r"peak [0-9.]+ [KM]iB "
get = program + ["get", "-w", "--groups=/nowhere", "--metric=rss", "--interval=1ms", "--max-cost=100"]
record = program + ["record", "--interval=1ms", "--max-cost=100", "--measure=statm"]
check_view(get + [pid], r"[0-9.]+ [KM]iB rss,", peak + "rss at .* samples")
check_view(record + ["-o", "live.db", pid], r"[0-9.]+ [KM]iB rss,", peak + "rss at .* moments.*; recording took")
check_tree(get + ["-r", "-v", pid])
