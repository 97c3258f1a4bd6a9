"""check_new_trace.py OLD NEW: checks that both have the same lines except for addresses, and that no two live blocks of NEW
overlap."""
import re
import sys

ADDRESS = re.compile(r"[0-9a-f]*<")


def events(path):
    return [line.rstrip("\n") for line in open(path) if not line.startswith("#")]


old, new = events(sys.argv[1]), events(sys.argv[2])
assert [ADDRESS.sub("<", line) for line in old] == [ADDRESS.sub("<", line) for line in new]

live = {}  # address -> tag
for number, line in enumerate(new, 1):
    call, _, result = line.partition(" = ")
    block = re.search(r"([0-9a-f]*)<(\d+)>", call)
    refused = result.startswith("0") and not re.search(r", 0\)$", call)
    if block and block.group(1) and not (result and refused):
        assert live.pop(block.group(1)) == block.group(2), (number, line)
    made = re.match(r"([0-9a-f]*)<(\d+)>", result)
    if made:
        assert made.group(1), (number, line)
        assert made.group(1) not in live, (number, line)
        live[made.group(1)] = made.group(2)
assert len(new) > 1000 and live
