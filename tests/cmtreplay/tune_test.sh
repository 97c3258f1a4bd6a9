# A search finds the setting that lowers the peak of a program whose frees raise glibc's threshold for mappings. It
# reports the settings that the library ignores, and continues from its cells.
{
  echo 'malloc(200000) = <1>'
  echo 'free(<1>)'  # the threshold is now 200,000
  for i in $(seq 100 119); do
    echo "malloc(200000) = <$((2 * i))>"
    echo "malloc(100) = <$((2 * i + 1))>"
  done
  for i in $(seq 100 119); do echo "free(<$((2 * i))>)"; done
  for tag in $(seq 400 419); do echo "malloc(300000) = <$tag>"; done
} > t.trace
tune() { cmtreplay --tune=memory --alloc=libc --results=res "$@" t.trace; }

# As tasks of a cluster: the stage that is open is listed, and its cells are run in parts.
tune --tasks > tasks
printf '1\topen\tt\tlibc\n' | cmp - tasks
tune --task=1 > words
grep -qx 'allocators: 1 cell done' words
tune --tasks > tasks
grep -qx "$(printf '1\topen\tt\tlibc,GLIBC_TUNABLES=glibc.malloc.arena_max=1')" tasks
tune --task=1-2 > words
tune --tasks > tasks
test "$(grep -c done tasks)" = 2
test "$(ls res | wc -l)" = 3
status=0
tune --task=1-1000 2> words || status=$?
test $status = 2
grep -q -- '--task is a number up to' words

tune --json > report.json
/usr/bin/python3 << 'END'
import json
report = json.load(open("report.json"))
assert report["schema"] == "cmt.tune/1" and report["default"] == "libc" and report["traces"][0]["name"] == "t"
rows = {row["title"]: row for row in report["candidates"]}
assert len(rows) == len(report["candidates"]) and "libc" not in rows
lower = rows["libc mmap_threshold=131072 trim_threshold=262144"]
assert lower["environment"] == ["GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072:glibc.malloc.trim_threshold=262144"]
assert lower["alloc"] == "libc," + lower["environment"][0]
assert lower["peak"]["ratio"] < 0.7 < 0.9 < rows["libc mxfast=160"]["peak"]["ratio"]
assert lower["figures"]["peak_resident_bytes"] < 7 << 20 < 8 << 20 < report["default_figures"]["peak_resident_bytes"]
# The last stage has the most runs, and at least twelve. A row with the least memory is among the best.
last = [row for row in rows.values() if row["runs"] == max(each["runs"] for each in rows.values())]
judged = [row for row in rows.values() if row["runs"] >= 4]
least = min(row["peak"]["ratio"] for row in judged)
assert last and last[0]["runs"] >= 12 and any(row["best"] for row in judged if row["peak"]["ratio"] == least)
assert min(row["peak"]["ratio"] for row in last) <= lower["peak"]["ratio"] * 1.01
advice, = report["recommendations"]
assert advice["aim"] == "memory"
if not advice["is_default"]:  # a matter of time
    chosen = rows[advice["title"]]
    assert advice["env"] == "env " + " ".join(chosen["environment"]) + " PROGRAM"
    assert advice["peak"]["ratio"] <= 0.985 and advice["time"]["ratio"] <= 1.02
    assert advice["systemd"].startswith('Environment="GLIBC_') and advice["dockerfile"].startswith('ENV GLIBC_')
assert report["without_times"] == ["t"] and report["whole"] and len(rows) == report["wanted"]
END

# The same command runs nothing again, and has the same result in all forms.
cells=$(ls res | wc -l)
tune --json > again.json
test "$(ls res | wc -l)" = "$cells"
tune > table
tune --csv > table.csv
/usr/bin/python3 << 'END'
import csv, json
first, again = json.load(open("report.json")), json.load(open("again.json"))
for report in (first, again): report["seconds"] = 0
assert first == again
rows = list(csv.DictReader(open("table.csv")))
assert [row["alloc"] for row in rows] == [row["alloc"] for row in first["candidates"]]
assert float(rows[0]["peak_ratio"]) == first["candidates"][0]["peak"]["ratio"]
END
grep -q '^libc (default) ' table

# A script that repeats --tasks and --task ends, as a finished search has no cells to list.
tune --tasks > tasks
test ! -s tasks
tune --task=1 > words
printf 'the search has ended: no cell is open\n' | cmp - words
test "$(ls res | wc -l)" = "$cells"

# The decisions of the clock are kept beside the cells. A damaged file is reported, and counts as missing.
grep -qx 'end whole' res/tune-*-600000ms.decisions
head -c 100 res/tune-*-600000ms.decisions > damaged
cat damaged > res/tune-*-600000ms.decisions
tune > again 2> words
grep -qx 'cmtreplay: res/tune-[0-9a-f]*-600000ms.decisions: not the decisions of a search: counts as missing' words
test "$(ls res | wc -l)" = "$cells"
grep -qx 'end whole' res/tune-*-600000ms.decisions
grep -q "^least memory within 2 % of the default's time: " table
grep -qx 't: has no recorded times, so settings that give memory back after a time cannot be judged; record with cmttrace --time' table

# A budget that is spent at once is no proof that the default is best.
cmtreplay --tune=time --alloc=libc --tune-budget=1s --results=short t.trace > table
if ! grep -q '^\([0-9]*\) of about \1 settings' table; then
  grep -q '^the budget ended the search early; ' table
  test "$(grep -c 'the default is best' table)" = 0
fi

# A setting that the library ignores is reported, of a search and of --alloc.
libc='libc,GLIBC_TUNABLES=glibc.malloc.arena_max=1:glibc.malloc.no_such=1'
cmtreplay --alloc="$libc" --runs=1 t.trace > words 2>&1
grep -q "^cmtreplay: $libc: ignores glibc.malloc.no_such=1: glibc [0-9.]* has no such tunable\$" words
test "$(grep -c ': ignores ' words)" = 1
cmtreplay --alloc=libc,GLIBC_TUNABLES=glibc.malloc.mxfast=1000 --runs=1 t.trace > words 2>&1
grep -q ': ignores glibc.malloc.mxfast=1000: glibc [0-9.]* ignores values above 160$' words
cmtreplay --alloc=libc,MALLOC_CONF=narenas:1 --runs=1 t.trace > words 2>&1
grep -q ': ignores narenas:1: it is a setting of jemalloc$' words
cmtreplay --alloc=libc,MALLOC_MMAP_THRESHOLD=131072,MALLOC_ARENA_MAXX=1,MALLOC_TRACE=x,HOME=/ --runs=1 t.trace > words 2>&1
grep -q ': ignores MALLOC_MMAP_THRESHOLD=131072: the variable of glibc is MALLOC_MMAP_THRESHOLD_$' words
grep -q ": ignores MALLOC_ARENA_MAXX=1: the library's file does not contain this name\$" words
test "$(grep -c ': ignores ' words)" = 2
for asked in 'jemalloc,MALLOC_CONF=narenas:2,foo:1 foo:1' 'tcmalloc,TCMALLOC_RELEASE_RATE=2,TCMALLOC_FOO=1 TCMALLOC_FOO=1' \
  'mimalloc,MIMALLOC_EAGER_COMMIT=0,MIMALLOC_FOO=1 MIMALLOC_FOO=1'; do
  if ! cmtreplay --alloc="${asked%%,*}" --runs=1 t.trace > /dev/null 2>&1; then continue; fi
  cmtreplay --alloc="${asked% *}" --runs=1 t.trace > words 2>&1
  grep -qF ": ignores ${asked#* }: " words
  test "$(grep -c ': ignores ' words)" = 1
done

# Wrong use.
refuses() {  # refuses WORDS ARGUMENT...
  local wanted=$1 status=0
  shift
  cmtreplay "$@" > words 2>&1 || status=$?
  test $status = 2
  grep -qF -- "$wanted" words
}
refuses '--tune-budget needs --tune' --tune-budget=1min t.trace
refuses '--tune needs a trace in a file' --tune
refuses 'cannot be standard input' --tune -
refuses 'give libc,A=1 without them' --tune --alloc=libc,A=1 t.trace
refuses '--tune' --tune --runs=3 t.trace
