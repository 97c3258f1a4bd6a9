# The memory before a program frees all of its blocks is reported apart from what remains after that.
/usr/bin/python3 - > rests.trace << 'END'
now = 0
def line(text, step):
    global now
    now += step
    print(f"{text} time={now}")
print("#cmt text=1")
for tag in range(1, 2001): line(f"malloc(10000) = <{tag}>", 1000)
for tag in range(101, 2001): line(f"free(<{tag}>)", 1000)
line("malloc(16) = <2001>", 500_000_000)  # it waits
for tag in range(1, 101): line(f"free(<{tag}>)", 1000)
END
sed 's/ time=.*//' rests.trace > untimed.trace
head -1501 rests.trace > keeps.trace
cmtreplay --runs=1 --json rests.trace > rests.json
cmtreplay --runs=1 --csv rests.trace > rests.csv
/usr/bin/python3 - << 'END'
import csv, json
report = json.load(open("rests.json"))
trace, libc = report["trace"], report["allocators"][0]
# Before it there are 100 blocks of 10,000 bytes, and the one of 16.
assert trace["before_teardown_event"] in (3900, 3901), trace
assert trace["before_teardown_live_bytes"] in (1_000_000, 1_000_016), trace
mark, = [mark for mark in libc["marks"] if mark["event"] == trace["before_teardown_event"]]
assert libc["before_teardown_resident_bytes"] == mark["resident_bytes"] >= 1_000_000, libc
assert libc["end_resident_bytes"] == libc["marks"][-1]["resident_bytes"]
assert libc["memory_runs"][0]["before_teardown_resident_bytes"] >= 1_000_000
row = next(csv.DictReader(open("rests.csv")))
assert int(row["before_teardown_resident_bytes"]) >= 1_000_000, row
END
cmtreplay --runs=1 rests.trace > table
grep -q 'before tear-down  after it' table
grep -qE '^tear-down: after event 3,90[01] live bytes fall for good, from 977 KiB to 16 B$' table
# Without times the wait is not seen: all frees are one fall.
cmtreplay --runs=1 untimed.trace > table
grep -q '^tear-down: after event 2,000 live bytes fall for good, from 19.1 MiB to 16 B; by events, since no times were recorded$' table
# A program that keeps its blocks has none.
cmtreplay --runs=1 keeps.trace > table
! grep -q 'tear-down' table && grep -q 'at end' table
# A board compares it, and cells have it.
cmtreplay --runs=1 --csv --results=cells rests.trace keeps.trace > board.csv 2> words
/usr/bin/python3 - << 'END'
import csv
for row in csv.DictReader(open("board.csv")):
    assert row["before_teardown_ratio"] == "1" and int(row["before_teardown_resident_bytes"]) >= 1_000_000, row
END
# Cells of older versions lack the figure.
sed -i '/before_teardown_resident_bytes/d' cells/*.json
cmtreplay --scoreboard=cells --csv > board.csv
/usr/bin/python3 -c '
import csv
assert [row["before_teardown_ratio"] for row in csv.DictReader(open("board.csv"))] == ["", ""]'
