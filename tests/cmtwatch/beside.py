#!/usr/bin/python3
"""Checks the line that cmtwatch shows on the terminal of its command: in the last row, and never elsewhere.

    beside.py PROGRAM...: how cmtwatch is called.
"""

import contextlib
import os
import re
import sqlite3
import subprocess
import sys
import time

from screen import BARS, Terminal

ROWS, COLUMNS = 6, 250
STATUS = re.compile(rf"s +[0-9.]+ [KM]?i?B rss, .*[{BARS}]")
LAST = re.compile(r"(cmtwatch record: )?peak [0-9.]+ [KM]iB rss at ")
RESTORE, INDEX = b"\x1b8", b"\x1bD"
program = sys.argv[1:]


def recording(*options):
    """How to record, and the file."""
    recording.number = getattr(recording, "number", 0) + 1
    path = f"beside{recording.number}.db"
    sampling = [] if options else ["--interval=1ms", "--max-cost=100"]
    return program + ["record", "-o", path, "--measure=statm", *sampling, *options, "--"], path


def watching():
    return program + ["run", "-w", "--metric=rss", "--interval=1ms", "--max-cost=100", "--groups=/nowhere", "--"]


def beside(command, script, **kinds):
    return Terminal(command + ["sh", "-c", script], **{"rows": ROWS, "columns": COLUMNS, **kinds})


def is_drawn(screen):
    return STATUS.search(screen.last_row()) is not None


def said(screen):
    """Returns everything except our line."""
    lines = screen.text()
    if is_drawn(screen):
        lines.pop()
    while lines and not lines[-1]:
        lines.pop()
    return lines


def wait_for_said(terminal, lines):
    """Until the command has said this, and the line was drawn after it, and nothing else is there."""
    def has_said(screen):
        above = screen.text()[:-1]
        assert not any(bar in line for line in above for bar in BARS), above
        return said(screen) == lines
    terminal.wait_for(has_said, f"it said {lines}")
    wait_for_drawing(terminal)
    assert said(terminal.screen) == lines, said(terminal.screen)


def wait_for_drawing(terminal):
    before = terminal.screen.last_row()
    terminal.wait_for(lambda screen: is_drawn(screen) and screen.last_row() != before, "it was drawn")


def wait_for_moments(path):
    """Until so much time has been recorded from now on that there would have been a drawing."""
    def last_ns():
        try:
            with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
                return database.execute("select max(begin_ns) from tick where id < (select max(id) from tick)").fetchone()[0]
        except sqlite3.OperationalError:  # there is none yet, or it is being written
            return None
    first = last_ns() or 0
    give_up = time.monotonic() + 240
    while (last_ns() or 0) < first + 500_000_000:
        if time.monotonic() > give_up:
            states = subprocess.run(["ps", "-eo", "pid,ppid,pgid,tpgid,stat,wchan:20,args"], capture_output=True, text=True, check=True).stdout
            raise AssertionError(f"{path} has had no new moments for 240 s:\n{states}")
        time.sleep(0.01)


def check_end(terminal, status, lines):
    """Only the output of the command and one line of the whole are left."""
    ended, left = terminal.end(), terminal.screen.text()
    assert ended == status, f"exit {ended}: {left}"
    assert terminal.screen.scrolls_wholly(), terminal.screen.margins
    assert left[:-1] == lines and LAST.match(left[-1]), left


def check_text(command):
    """The command's output is where it would have been without us: at first, in mid-line, at the bottom, when it scrolls."""
    script = ("echo said; read -r go; printf half; read -r go; echo ' whole'; read -r go; "
              "for i in 1 2 3 4 5 6 7 8 9 10; do echo line $i; done; read -r go; printf last; read -r go; echo ' word'; "
              "read -r go; exit 7")
    terminal = beside(command, script)
    lines = ["said"]
    wait_for_said(terminal, lines)
    for more in (["half"], ["half whole"], [f"line {i}" for i in range(1, 11)], ["last"], ["last word"]):
        terminal.type(b"go\n")
        if lines[-1] in ("half", "last"):
            lines.pop()
        lines += more
        wait_for_said(terminal, lines)
    terminal.type(b"go\n")
    check_end(terminal, 7, lines)


def check_full_line(command):
    """After a line that is full the text goes on in the next one, though we drew in between. Only now and then, when the
    row is reserved anew, the terminal forgets that: then it is tried again."""
    terminal = beside(command, f"while read -r go; do printf '\\n%0{COLUMNS}d' 0; read -r go; printf over; done")
    wait_for_drawing(terminal)
    between = INDEX
    while INDEX in between:
        terminal.type(b"go\n")
        terminal.wait_for(lambda screen: said(screen)[-1:] == ["0" * COLUMNS], "a full line")
        begin = terminal.written.rindex(b"0" * COLUMNS)
        wait_for_drawing(terminal)
        terminal.type(b"go\n")
        terminal.wait_for(lambda screen: said(screen)[-1:] and said(screen)[-1].endswith("over"), "over")
        between = terminal.written[begin:]
    assert said(terminal.screen)[-2:] == ["0" * COLUMNS, "over"], said(terminal.screen)
    terminal.type(b"\x04")
    assert terminal.end() == 0


def check_reset(command):
    """Where the command resets the terminal, the row is reserved again: at once, unless the command has used it
    meanwhile."""
    terminal = beside(command, "read -r go; printf '\\033cnew'; read -r go; echo er; seq 20; read -r go; "
                               "printf '\\033c'; seq 20; read -r go; seq 21 40; read -r go")
    wait_for_drawing(terminal)
    terminal.type(b"go\n")
    wait_for_said(terminal, ["new"])
    terminal.type(b"go\n")
    lines = ["newer"] + [str(i) for i in range(1, 21)]
    wait_for_said(terminal, lines)
    begin = len(terminal.written)
    terminal.type(b"go\n")
    terminal.wait_for(lambda _: INDEX in terminal.written[begin:].partition(b"\n20\r")[2], "the row is reserved")
    terminal.type(b"go\n")
    lines = [str(i) for i in range(21, 41)]
    terminal.wait_for(lambda screen: said(screen)[-20:] == lines, "they are said")
    wait_for_drawing(terminal)
    assert said(terminal.screen)[-20:] == lines, said(terminal.screen)
    terminal.type(b"go\n")
    assert terminal.end() == 0


def check_resize(command):
    """After a resize the line is in the last row of the terminal and nowhere else; with two rows there is none."""
    terminal = beside(command, "printf said; read -r go; echo; echo more; read -r go; exit 3")
    wait_for_said(terminal, ["said"])
    for rows, columns in (10, 300), (4, 200), (12, 200), (2, 250), (9, 250):
        terminal.wait_for(lambda _: terminal.written.endswith(RESTORE), "a drawing was whole")
        begin = len(terminal.written)
        terminal.resize(rows, columns)
        if rows == 2:
            terminal.wait_for(lambda _: b"\x1b[J" in terminal.written[begin:], "the line was taken away")
            assert said(terminal.screen) == ["said"], terminal.screen.text()
        else:
            terminal.wait_for(lambda _: b"\x1b[1;%dr" % (rows - 1) in terminal.written[begin:], "it was drawn for this size")
            wait_for_said(terminal, ["said"])
    terminal.type(b"go\n")
    wait_for_said(terminal, ["said", "more"])
    terminal.type(b"go\n")
    check_end(terminal, 3, ["said", "more"])


def check_keys():
    """While the command takes keys instead of lines the whole terminal is the command's."""
    command, path = recording()
    terminal = beside(command, "echo said; read -r go; stty -icanon; printf keys; dd bs=1 count=1 2>&-; printf '\\ntaken'; "
                               "dd bs=1 count=1 2>&-; stty icanon; echo; read -r go")
    wait_for_said(terminal, ["said"])
    terminal.type(b"go\n")
    terminal.wait_for(lambda screen: screen.text() == ["said", "keys"] and screen.scrolls_wholly() and
                      terminal.written.endswith((RESTORE, RESTORE + b"keys")), "the row is given back")
    begin = len(terminal.written)
    wait_for_moments(path)
    terminal.type(b"k")
    terminal.wait_for(lambda screen: "taken" in screen.text()[-1], "the key")
    assert terminal.written[begin:] == b"k\r\ntaken", terminal.written[begin:]
    terminal.type(b"k")
    lines = ["said", "keysk", "takenk"]
    wait_for_said(terminal, lines)
    terminal.type(b"go\n")
    check_end(terminal, 0, lines)


def check_nothing(**kinds):
    """A terminal that does not understand, or is too small."""
    command, path = recording()
    terminal = beside(command, "echo said; read -r go", **kinds)
    wait_for_moments(path)
    terminal.type(b"go\n")
    ended = terminal.end()
    assert ended == 0 and b"\x1b" not in terminal.written, terminal.written
    assert re.fullmatch(rb"said\r\ncmtwatch record: peak .*\r\n", terminal.written), terminal.written


def check_signal(command, keys, status):
    """The line is removed also if a signal ends the command."""
    terminal = beside(command, "echo said; read -r go")
    wait_for_said(terminal, ["said"])
    terminal.type(keys) if keys else terminal.send("SIGTERM")
    check_end(terminal, status, ["said"])


def check_enough():
    """The line is removed when all moments are recorded, though the command goes on."""
    command, _ = recording("--interval=10ms", "--count=100")  # so that it was drawn by then
    terminal = beside(command, "echo said; read -r go; echo end")
    wait_for_drawing(terminal)
    terminal.wait_for(lambda screen: screen.text() == ["said"] and screen.scrolls_wholly(), "all moments")
    terminal.type(b"go\n")
    check_end(terminal, 0, ["said", "end"])


def check_jobs():
    """A shell's job: the terminal is given back when it stops, left alone from the background, used when it is back."""
    command, path = recording()
    os.mkfifo("go")
    terminal = Terminal(["bash", "--norc", "--noprofile", "--noediting", "-i"], ROWS, COLUMNS)
    terminal.type(b"PS1=; stty -echo tostop\n")
    terminal.type(" ".join(command).encode() + b" sh -c 'echo said; read -r go <go'\n")
    wait_for_drawing(terminal)
    terminal.type(b"\x1a")
    terminal.wait_for(lambda screen: "Stopped" in screen.text()[-1], "it was stopped")
    assert terminal.screen.scrolls_wholly() and not any(bar in "".join(terminal.screen.text()) for bar in BARS)
    begin = len(terminal.written)
    terminal.type(b"bg\n")
    wait_for_moments(path)
    terminal.type(b"echo back\n")
    terminal.wait_for(lambda screen: "back" in screen.text()[-1], "the shell")
    assert b"\x1b" not in terminal.written[begin:], terminal.written[begin:]
    terminal.type(b"fg\n")
    wait_for_drawing(terminal)
    with open("go", "w") as go:
        print("on", file=go)
    terminal.wait_for(lambda screen: LAST.match(screen.text()[-1]), "the end")
    terminal.type(b"exit 5\n")
    assert terminal.end() == 5
    assert terminal.screen.scrolls_wholly() and not any(bar in "".join(terminal.screen.text()) for bar in BARS)


for check in check_text, check_full_line, check_resize:
    check(watching())
    check(recording()[0])
check_reset(watching())
check_keys()
check_nothing(term="dumb")
check_nothing(term=None)
check_nothing(rows=2)
check_signal(watching(), None, -15)
check_signal(recording()[0], b"\x03", -2)
check_enough()
check_jobs()
