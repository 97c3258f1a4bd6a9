"""table_facts.py CSV: prints a line for each column of a table of events: the number of values, their sum, least and
greatest (for texts, of their lengths in bytes). With a further argument, prints the results of the manual page's queries."""
import csv, sys
from collections import Counter, defaultdict

rows = list(csv.DictReader(open(sys.argv[1], newline="", encoding="utf-8")))
texts = ("kind", "label")


def values(column):
    if column in texts:  # no label is null in these rows unless the kind has none
        has = [row[column] for row in rows if column == "kind" or row["kind"] in ("mark", "thread_name")]
        return [len(text.encode()) for text in has]
    return [int(row[column]) for row in rows if row[column]]


def power(size):
    return 0 if size == 0 else 1 << (size.bit_length() - 1)


if len(sys.argv) == 2:
    for column in rows[0]:
        all = values(column)
        print(column, len(all), sum(all) if all else None, min(all, default=None), max(all, default=None))
else:
    blocks, total, ended, leaked = Counter(), Counter(), defaultdict(list), {}
    for row in rows:
        if row["lifetime_events"]:
            ended[power(int(row["old_size"]))].append(int(row["lifetime_events"]))
            del leaked[row["old_tag"]]
        if row["tag"]:
            size = int(row["size"])
            blocks[power(size)] += 1
            total[power(size)] += size
            leaked[row["tag"]] = size
    for size in sorted(blocks):
        print(size, blocks[size], total[size])
    for size, ages in sorted(ended.items()):
        ages.sort()
        at = lambda share: (len(ages) - 1) * share
        mix = lambda x: ages[int(x)] + (ages[min(int(x) + 1, len(ages) - 1)] - ages[int(x)]) * (x - int(x))
        print(size, len(ages), *("%.3f" % mix(at(share)) for share in (0.5, 0.9, 0.99)))
    by_size = Counter(leaked.values())
    for size, count in sorted(by_size.items(), key=lambda item: (-item[0] * item[1], item[0]))[:20]:
        print(size, count, size * count)
