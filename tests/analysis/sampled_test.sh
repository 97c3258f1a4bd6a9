# lifetimes on sampled traces, and --as-if-sampled on full ones.
. "$SOURCE/tests/behaviours.sh"
lifetimes() { "$BUILD/lifetimes/lifetimes" "$@"; }
sampled=$SOURCE/format-spec/vectors/sampled.cmt
lacks() { if grep -q "$@"; then return 1; fi; }
# refused WORDS STATUS ARGUMENT...: one line, and after wrong use one about --help
refused() {
  local status=0
  lifetimes "${@:3}" >out 2>err || status=$?
  [ "$status" = "$2" ] && [ "$(wc -l <err)" = "$2" ] && grep -qF "$1" err && [ ! -s out ]
}

# The vector's blocks, by the definition of weights. The interval rises from 512 KiB to 1 MiB and 4 MiB.
by_size() {
  lifetimes --by=size --json "$sampled" >by.json
  /usr/bin/python3 - <<'END'
import json, math
report = json.load(open("by.json"))
def weight(size, interval):
    return size / -math.expm1(-size / interval)
half = 1 << 19
made = [(600000, half), (4096, half), (6400, half), (1 << 20, half), (100, 2 * half), (1 << 21, 2 * half)]
allocated = report["total"]["sampled"]["allocated"]
assert abs(allocated["bytes"] - sum(weight(*each) for each in made)) < 1
assert allocated["samples"] == 6 and allocated["bytes_low"] < allocated["bytes"] < allocated["bytes_high"]
live = report["total"]["sampled"]["end_live"]
assert abs(live["bytes"] - weight(100, 8 * half)) < 1 and live["samples"] == 1
assert report["total"]["end_live_bytes"] == live["bytes"]
sampling = report["sampling"]
assert sampling["first_interval_bytes"] == half and sampling["interval_bytes"] == 8 * half
assert abs(sampling["unseen_below_bytes"] / (8 * half) - 3.0) < 0.01 and "lifetimes" in sampling["not_computed"]
for use in [report["total"]] + [each["self"] for each in report["contributors"]]:
    assert use["temporary_blocks"] is None and use["reallocated_blocks"] is None and use["untouched_bytes"] is None
assert all(each["lifetime_p50"] is None for each in report["contributors"])
unseen = [each["self"]["sampled"]["end_live"] for each in report["contributors"] if each["self"]["end_live_bytes"] == 0]
assert unseen and all(each["bytes_high"] == sampling["unseen_below_bytes"] and each["blocks_high"] is None for each in unseen)
END
  lifetimes --by=size --csv "$sampled" >by.csv
  /usr/bin/python3 -c 'import csv; rows = list(csv.reader(open("by.csv"))); assert len({len(row) for row in rows}) == 1 and len(rows) == 7'
  head -n 1 by.csv >titles
  grep -q ',sampled_allocated_bytes_low,' titles
}
behaviour "estimates, intervals and what is not known, by size" by_size

as_text() {
  lifetimes --by=thread --sort=growth "$sampled" >text
  grep -q 'estimates from 6 samples, 1 of them live at the end; one per 512 KiB, at the end per 4.00 MiB$' text
  grep -q 'a thread below 12.0 MiB can be without a sample' text
  grep -qE '^thread 1 .* growth|thread 1 .* to ' text
  lifetimes --summary "$sampled" >summary
  lifetimes --by=size "$sampled" >by
  cmp summary by
  lifetimes --by=size --slice=@ready: "$sampled" >text
  grep -q 'estimates from 0 samples' text
}
behaviour "the text, the summary and a slice" as_text

refusals() {
  refused 'lacks most blocks' 1 "$sampled"
  refused 'lacks most blocks' 1 --counts "$sampled"
  refused 'lacks most blocks' 1 --baseline="$sampled" "$sampled"
  for figure in temporary short-lived other-thread reallocated untouched; do
    refused "\"$figure\" cannot be estimated" 1 --by=size --sort=$figure "$sampled"
  done
  refused 'lifetimes cannot be estimated' 1 --by=size --clock=bytes "$sampled"
  refused 'one trace is sampled and the other is not' 1 --by=size --diff="$SOURCE/format-spec/vectors/large.cmt" "$sampled"
  refused 'needs --as-if-sampled' 2 --by=size --runs=3 "$sampled"
  refused 'sorts by bytes, peak or live' 2 --as-if-sampled=1K --by=size --sort=blocks "$sampled"
  refused 'as-if-sampled' 2 --as-if-sampled=0 "$sampled"
  refused 'as-if-sampled' 2 --as-if-sampled=5X "$sampled"
  refused 'lacks most blocks' 1 --as-if-sampled=1K --by=size "$sampled"
}
behaviour "figures that need all blocks are refused in one line" refusals

differences() {
  lifetimes --by=size --diff="$sampled" "$sampled" >text
  lacks -E '^[0-9].* [+-][1-9][0-9.]* [KM]iB to' text
  lifetimes --by=size --diff="$sampled" --json --sort=bytes "$sampled" >diff.json
  /usr/bin/python3 - <<'END'
import json
report = json.load(open("diff.json"))
assert report["sampled"] and report["change"] == 0
assert all(each["change_low"] <= 0 <= each["change_high"] for each in report["contributors"])
END
}
behaviour "a sampled trace does not differ from itself" differences

# Where each block of 40 bytes or more is a sample, the estimates are the truth.
exports() {
  "$BUILD/cmttrace/cmttrace" --sample-bytes=1 -o all.cmt -- sort "$SOURCE/README.md" >/dev/null 2>&1
  lifetimes --by=function --json all.cmt >all.json
  lifetimes --folded=bytes all.cmt >folded
  lacks -v '^\[estimates from a sample per 1 B\];' folded
  lifetimes --pprof=all.pb.gz all.cmt
  lifetimes --speedscope=all.speedscope.json all.cmt
  /usr/bin/python3 "$SOURCE/tests/analysis/check_speedscope.py" all.speedscope.json >speedscope
  /usr/bin/python3 "$SOURCE/tests/analysis/read_pprof.py" all.pb.gz >profile
  lacks temporary profile speedscope
  grep -q 'estimates from samples: a sample per 1 B at the start' profile
  /usr/bin/python3 - <<'END'
import json
report = json.load(open("all.json"))
bytes_of = report["total"]["allocated_bytes"]
folded = sum(int(line.rsplit(" ", 1)[1]) for line in open("folded"))
assert bytes_of > 1000 and abs(folded - bytes_of) <= report["stacks"], (folded, bytes_of)
assert sum(each["self"]["allocated_bytes"] for each in report["contributors"]) == bytes_of
END
}
behaviour "exports of stacks have the sums of the estimates, and say that they are estimates" exports

as_if() {
  lifetimes --as-if-sampled=64K --by=size --json "$SOURCE/corpus/redis.cmt" >1.json
  lifetimes --as-if-sampled=64K --by=size --json --jobs=1 "$SOURCE/corpus/redis.cmt" >2.json
  cmp 1.json 2.json
  lifetimes --as-if-sampled=64K --by=size --json --runs=1 --seed=2 "$SOURCE/corpus/redis.cmt" >3.json
  lifetimes --summary --json "$SOURCE/corpus/redis.cmt" >summary.json
  lifetimes --as-if-sampled=1 --by=size --runs=2 --json "$SOURCE/corpus/redis.cmt" >all.json
  lifetimes --as-if-sampled=64K --by=size "$SOURCE/corpus/redis.cmt" >text
  grep -q 'as if sampled every 64.0 KiB: .* (run 1 of 30, seed 1)' text
  /usr/bin/python3 - <<'END'
import json
one, three, every = (json.load(open(name)) for name in ("1.json", "3.json", "all.json"))
total = one["total"]
sizes = json.load(open("summary.json"))["sizes"]
assert total["allocated"]["bytes"] == sum(each["allocated_bytes"] for each in sizes)
assert all(one["coverage"][figure]["held"] >= 0.94 for figure in ("allocated", "peak", "end_live"))
assert three["total"]["allocated"]["estimate"] != total["allocated"]["estimate"] and three["runs"] == 1
assert one["stack_coverage"]["allocated"]["sets"] == 0
for figure in ("allocated", "peak", "end_live"):
    judged = every["total"][figure]
    assert abs(judged["estimate"]["bytes"] - judged["bytes"]) < 0.001 * judged["bytes"] + 1000
END
}
behaviour "simulated samplers know the truth, are the same in each run, and are as good as they say" as_if
exit "$failed"
