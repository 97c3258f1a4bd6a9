"""sampled.py TRACE.cmt SIZE=MADE,LIVE ...: compares the estimates of a sampled trace, by the size of the blocks, with
what the program has done: blocks made, and blocks that live at the end. MADE or LIVE may be "-": not compared.

Exits with 1 if an estimate is further off than six standard deviations, or an event ends a block that is no sample.
Prints "interval BYTES", the interval at the end, and the number of samples made."""
import math
import pathlib
import subprocess
import sys

source = pathlib.Path(__file__).resolve().parents[3]
text = subprocess.run([sys.executable, "-B", "-m", "cmt_trace", pathlib.Path(sys.argv[1]).resolve()], check=True,
                      capture_output=True, text=True, cwd=source / "python").stdout


def probability(size, interval):
    return -math.expm1(-size / interval)


def tag_of(block):
    return block[block.index("<") + 1:-1] if "<" in block else None


interval, live, samples = 0, {}, 0
made = {}  # by size: the sums of 1 / p and of its variance
for line in text.splitlines():
    if line.startswith("#cmt sampled="):
        interval = int(line.split("=")[1])
    if line.startswith("#cmt repairs"):
        sys.exit(f"{sys.argv[1]}: {line}")
    if line.startswith("#") or "(" not in line:
        continue
    call, rest = line.split("(", 1)
    arguments, _, result = rest.partition(")")
    result = result.removeprefix(" = ").split(" ")[0]
    given = arguments.split(", ")
    if call == "sampling_interval":
        assert int(given[0]) == 2 * interval, line
        interval = int(given[0])
        continue
    is_end = call.startswith(("free", "operator delete", "unsample")) or call.startswith("realloc")
    if is_end and tag_of(given[0]) and not (result == "0" and given[-1] != "0"):
        if live.pop(tag_of(given[0]), None) is None:
            sys.exit(f"{sys.argv[1]}: ends no sample: {line}")
    if tag_of(result):
        size = int(given[-1].split("=")[0]) if call != "calloc" else int(given[0]) * int(given[1])
        live[tag_of(result)] = size
        samples += 1
        p = probability(size, interval)
        count, variance = made.get(size, (0, 0))
        made[size] = count + 1 / p, variance + (1 - p) / p / p

wrong = 0
for word in sys.argv[2:]:
    size, _, wanted = word.partition("=")
    size = int(size)
    p = probability(size, interval)
    living = sum(each == size for each in live.values())
    for name, truth, (count, variance) in zip(("made", "live"), wanted.split(","),
                                              (made.get(size, (0, 0)), (living / p, living * (1 - p) / p / p))):
        if truth == "-":
            continue
        # Where the truth is small, the estimate's own variance says little.
        deviation = math.sqrt(max(variance, int(truth) * (1 - p) / p))
        if abs(count - int(truth)) > 6 * deviation + 1e-6 * count:
            print(f"{sys.argv[1]}: {size}: {name} {count:.1f} +- {deviation:.1f}, not {truth}", file=sys.stderr)
            wrong = 1
print("interval", interval)
print("samples", samples)
sys.exit(wrong)
