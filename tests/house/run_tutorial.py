"""Runs the commands of a tutorial in the current folder, and compares what they print with what the tutorial shows.

    run_tutorial.py TUTORIAL.md

A command is a line "    $ COMMAND"; the lines below it, up to the next one or the end of the block, are its output. After
"..." there may be more. Numbers are compared where they are the same everywhere: not those of overhead, which depend on
the kernel's pages, and of cmtreplay, which measures; nor numbers of events, slices and lifetimes by them, since touched pages are events, too. Of perl and the
compiler, which are other versions elsewhere, nothing is compared, and they may be missing.
"""
import re
import shutil
import subprocess
import sys

FOREIGN = {"perl": "perl", "cc1plus": "c++"}
VARIES = re.compile(r" events?\b|all, with [0-9,]+ more$")  # how many functions have names depends on what is installed


def commands(text):
    """Pairs of a command and the lines that it prints."""
    found, inside = [], False
    for line in text.splitlines():
        if line.startswith("    $ "):
            found.append((line[6:], []))
            inside = True
        elif inside and line.startswith("    "):
            found[-1][1].append(line[4:])
        elif line:
            inside = False
        elif inside:
            found[-1][1].append("")
    return found


def words(line):
    """The words, with N for numbers; of a table's row the first alone: its columns depend on the figures, too."""
    if re.search(r"\S  +\S", line):
        return line.split()[:1]
    return re.sub(r"\S*\d\S*( ([KMG]?i?B|[mun]?s)\b)?", "N", line).split()


def differs(command, wanted, printed):
    """The first line that the command should have printed, or None."""
    wanted = "\n".join(wanted).rstrip().splitlines()
    printed = printed.rstrip().splitlines()
    has_more = wanted[-1:] == ["..."]
    if has_more:
        wanted.pop()
    elif len(printed) > len(wanted):
        return f"nothing, not: {printed[len(wanted)]}"
    for i, line in enumerate(wanted):
        is_exact = not re.match("overhead|cmtreplay|.*--slice|.*short-lived", command) and not VARIES.search(line)
        form = str.split if is_exact else words
        if i >= len(printed) or form(line) != form(printed[i]):
            return f"{line}\n  not: {printed[i] if i < len(printed) else 'nothing'}"
    return None


failed = 0
with open(sys.argv[1], encoding="utf-8") as file:
    tutorial = commands(file.read())
assert len(tutorial) >= 5, "a tutorial without commands"
for command, wanted in tutorial:
    foreign = [program for name, program in FOREIGN.items() if name in command]
    if foreign and not shutil.which(foreign[0]):
        continue
    done = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    difference = None if foreign else differs(command, wanted, done.stdout)
    if done.returncode != 0:
        print(f"{command}: exit {done.returncode}: {done.stderr}")
    elif difference:
        print(f"{command}: should print\n  {difference}")
    failed |= done.returncode != 0 or difference is not None
sys.exit(failed)
