# The live bytes at marks are exact: they equal an independent count over the text.
/usr/bin/python3 "$SOURCE/tests/cmtreplay/make_trace.py" 20011 7 > t.trace
cmtreplay --alloc=null --runs=1 --json t.trace > null.json 2> words
/usr/bin/python3 - << 'END'
import json, re
live, totals = {}, []
tag_of = lambda text: int(re.search(r"<(\d+)>", text).group(1)) if "<" in text else 0
for line in open("t.trace"):
    match = re.match(r"([a-z_ \[\]]+)\((.*?)\)(?: = (\S+))?", line)
    name, arguments, result = match.groups()
    made = tag_of(result or "")
    old = next((tag_of(word) for word in arguments.split(", ") if "<" in word), 0)
    numbers = [int(word) for word in arguments.split(", ") if word.isdigit()]
    if name.startswith("realloc") and arguments.startswith("0,"):
        numbers = numbers[1:]
    if name in ("calloc", "reallocarray"):
        size = numbers[0] * numbers[1]
    elif "align" in name and result:
        size = numbers[1]
    else:
        size = numbers[0] if numbers else 0
    if old and (made or not result or size == 0):
        live.pop(old, None)
    if made:
        live[made] = size
    totals.append((sum(live.values()) if not totals or old or made else totals[-1][0], len(live)))
with open("null.json") as file:
    report = json.load(file)
assert report["trace"]["events"] == len(totals)
assert report["trace"]["peak_live_bytes"] == max(bytes for bytes, _ in totals)
assert report["trace"]["peak_live_blocks"] == max(blocks for _, blocks in totals)
assert totals[report["trace"]["peak_live_bytes_event"] - 1][0] == report["trace"]["peak_live_bytes"]
marks = report["baseline"]["marks"]
assert len(marks) == 100 and marks[-1]["event"] == len(totals)
for mark in marks:
    assert (mark["live_bytes"], mark["live_blocks"]) == totals[mark["event"] - 1], mark
END
