# Checks lifetimes and overhead on touched pages: figures that follow from the lines by hand, and an independent count.

failed=0
complain() { echo "wrong: $*" >&2; failed=1; }
cat >pages.trace <<'END_OF_TRACE'
#cmt text=1
#cmt touched_min=16384
#module 1 begin=1000 end=9000 bias=1000 path=/opt/app
#frame 1 module=1 address=1010
#name 1 function=read_all
#frame 2 module=1 address=1020
#name 2 function=make_table
#node 1 parent=0 frame=1
#node 2 parent=0 frame=2
malloc(65536) = 10010<1> stack=1
malloc(65536) = 20020<2> stack=1
malloc(40000) = 40010<3> stack=2
malloc(100) = 60000<4> stack=2
touch(10010<1>, 4096, 2, 0)
malloc(20000) = 70000<5> stack=2
resident(70000<5>, 4096, 0, 0)
mallopt("M_TRIM_THRESHOLD=65536")
touch(20020<2>, 4096, 1, 32736)
free(20020<2>) stack=1
malloc(30000) = 80010<6> stack=1
touch(40010<3>, 4096, 0, 0)
free(40010<3>) stack=2
touch(10010<1>, 4096, 1, 8176)
touch(60000<4>, 4096, 0, 0)
#cmt end=complete
END_OF_TRACE
trace2cmt -o pages.cmt pages.trace

# The trace touches 8,176 and 4,096 bytes of <1>, 4,096 of <2>, all of <3> and <5>, and none of <6>. The peak is the sixth
# event.
for file in pages.trace pages.cmt; do
  lifetimes --json $file >out.json
  lifetimes --by=function --json $file >by.json
  lifetimes --by=size --json $file >sizes.json
  lifetimes --by=size --sort=untouched $file | grep '^96 ' >row && grep -q ' -$' row || complain "untouched bytes that are not known: $(cat row)"
  lifetimes --summary $file >text
  grep -q '^16384-20479 .* -$' text && grep -q '^ *all .* >= ' text && grep -q '^>=: at least; of 19.5 KiB ' text || complain "classes: $(cat text)"
  cmtreport --text $file >text
  grep -q 'KiB  or more never touched, in read_all' text || complain "a finding of bytes never touched: $(cat text)"
  overhead --json $file >overhead.json
  python3 - <<'END_OF_CHECK' || complain "figures of $file"
import json
summary, by, pages = (json.load(open(name)) for name in ("out.json", "by.json", "overhead.json"))
one, two, six = 65536 - 8176 - 4096, 65536 - 4096, 30000
first = summary["inputs"][0]
assert (first["touched_min_bytes"], first["peak_event"]) == (16384, 6), first
assert first["peak_untouched_bytes"] == one + two, first
untouched = {size["size_bytes_min"]: size["untouched_bytes"] for size in summary["sizes"]}
assert untouched == {96: None, 16384: 0, 28672: six, 32768: 0, 65536: one + two}, untouched
unknown = {size["size_bytes_min"]: size.get("untouched_unknown_bytes") for size in summary["sizes"]}
assert unknown == {96: None, 16384: 20000, 28672: None, 32768: None, 65536: None}, unknown
assert summary["kinds"]["touch"] == 5 and summary["kinds"]["resident"] == 1, summary["kinds"]
of = {each["name"]: each["self"]["untouched_bytes"] for each in by["contributors"]}
assert of == {"read_all": one + two + six, "make_table": 0}, of
assert by["total"]["untouched_bytes"] == one + two + six, by["total"]
not_known = {each["name"]: each["self"]["untouched_unknown_bytes"] for each in by["contributors"]}
assert not_known == {"read_all": None, "make_table": 20000}, not_known
sizes = {each["name"]: each["self"]["untouched_bytes"] for each in json.load(open("sizes.json"))["contributors"]}
assert [bytes for name, bytes in sizes.items() if name.startswith("96 ")] == [None], sizes
# <1> and <2> share a page. Pages wholly in their block: of <1> and <2> 15 each, of <3> 8 and its start and end, of <5> 4 and its end. At the
# peak only the first pages of <1> are touched, of which one is wholly in it.
peak, end = pages["peak"], pages["samples"][-1]
assert (peak["event"], peak["pages"], peak["untouched_pages"]) == (6, 16 + 17 + 10 + 1 + 5, 14 + 15 + 8 + 4), peak
assert peak["touched_pages_estimate"] == 49 - 41, peak
assert (end["pages"], end["untouched_pages"]) == (17 + 1 + 5 + 8, 13 + 6), end
END_OF_CHECK
done
lifetimes --summary pages.cmt >out
grep -qx '  of that never touched, at least: 114,704 bytes, of blocks from 16.0 KiB' out && grep -q 'never touched$' out && grep -q '^ *65536-.* 112 KiB$' out ||
  complain "lifetimes: $(cat out)"
lifetimes --by=function --sort=untouched pages.cmt >out
grep -q '^function .*  never touched  with callees$' out && grep -qx 'sorted by asked for, but never touched' out || complain "--by: $(cat out)"
grep -qE '^make_table .* >= 0 B +>= 0 B$' out && grep -q '^>=: at least; of 19.5 KiB in other blocks it is not known' out || complain "what is not known: $(cat out)"

# A change between what is known and what is not known is none.
sed '/^resident/d' pages.trace >asked.trace
lifetimes --by=size --sort=untouched pages.trace | grep -q '^16,384 .* -$' || complain "nothing is known: $(lifetimes --by=size --sort=untouched pages.trace)"
lifetimes --diff=asked.trace --sort=untouched pages.trace >out
grep -qE '^all, with 2 more +161 KiB +>= 141 KiB$' out && ! grep -q '^make_table' out || complain "--diff: $(cat out)"
overhead --summary pages.cmt >out
grep -qx '  of these pages not known to be touched by then: 41, 164 KiB; known: 32.0 KiB' out || complain "overhead: $(cat out)"
overhead --page-size=2M --json pages.cmt | grep -q '"untouched_pages": 0' || complain "a page of 2 MiB is touched as soon as anything on it"

# A block about which the tracer did not ask, and one of which two pages were touched.
{
  printf '#cmt text=1\n#cmt touched_min=16384\nmalloc(65536) = 100000<1>\nresident(100000<1>, 4096, 0, 0)\n'
  printf 'malloc(65536) = 200000<2>\ntouch(200000<2>, 4096, 2, 0)\nmalloc(8) = 300000<3>\nfree(100000<1>)\n#cmt end=complete\n'
} >unknown.trace
overhead --summary unknown.trace | grep -qx '  of these pages not known to be touched by then: 14, 56.0 KiB; known: 12.0 KiB; not asked about, or in memory before: 64.0 KiB' ||
  complain "unknown pages: $(overhead --summary unknown.trace)"
overhead --json unknown.trace >pages.json
/usr/bin/python3 - <<'END_OF_CHECK' || complain "unknown pages, as JSON"
import json
end = json.load(open("pages.json"))["samples"][-1]
assert (end["pages"], end["untouched_pages"], end["unknown_pages"], end["touched_pages_estimate"]) == (17, 14, 0, 3), end
END_OF_CHECK

# Blocks that are live where a signal ends the program, or a part of a recording ends: nobody knows which of their pages were
# touched last.
for head in '' '#cmt kept=0ns:9ns' '#cmt slice=:4'; do
  for end in 'mark("ended by SIGTERM")' 'mark("end")'; do
    printf '%s\n' '#cmt text=1' ${head:+"$head"} '#cmt touched_min=16384' 'malloc(65536) = 100000<1>' 'touch(100000<1>, 4096, 4, 0)' 'free(100000<1>)' \
      'malloc(131072) = 200000<2>' 'touch(200000<2>, 4096, 2, 0)' "$end" '#cmt end=complete' >ended.trace
    case $head$end in mark*end\"*) wanted=172032 ;; *) wanted=49152 ;; esac
    lifetimes --summary --json ended.trace | grep -qE "\"peak_untouched_bytes\": $((wanted - 49152))\$|\"peak_untouched_bytes\": $((wanted - 49152))," ||
      complain "$head $end: $(lifetimes --summary ended.trace)"
    lifetimes --by=size --json ended.trace >sizes.json
    [ "$(/usr/bin/python3 -c 'import json; print(json.load(open("sizes.json"))["total"]["untouched_bytes"])')" = $wanted ] ||
      complain "$head $end: by size: $(lifetimes --by=size --sort=untouched ended.trace)"
    [ "$(trace2cmt --info --json ended.trace | grep -E '"(untouched|unknown_at_end)_bytes"' | tr -dc '0-9\n' | paste -sd+ | bc)" = 172032 ] ||
      complain "$head $end: $(trace2cmt --info ended.trace)"
  done
done

# A touch does not end its block: its line has no annotation, and no defect is reported.
lifetimes pages.trace >out 2>err; overhead pages.trace >out2 2>>err
[ ! -s err ] && ! grep -E '^(touch|resident|mallopt).* # ' out out2 || complain "annotated: $(cat err)"

# A block that is freed at once is temporary, even if its pages are touched in between.
printf '#cmt text=1\n#cmt touched_min=16384\nmalloc(65536) = 10010<1>\ntouch(10010<1>, 4096, 1, 0)\nfree(10010<1>)\n#cmt end=complete\n' >short.trace
lifetimes --json short.trace | grep -q '"temporary_blocks": 1' || complain "a temporary block"

# A merge with a trace without touched pages keeps the known figures. A summary of an older version lacks these keys.
printf 'malloc(65536) = 10010<1>\n' >other.trace
lifetimes --json other.trace >other.json
lifetimes --json pages.trace >pages.json
grep -vE 'untouched|touched_min' other.json | sed -z 's/,\(\n *[]}]\)/\1/g' >before.json
lifetimes --merge --json other.json before.json pages.json >merged.json || complain "--merge"
python3 - <<'END_OF_CHECK' || complain "merged figures"
import json
merged = json.load(open("merged.json"))
assert [each["peak_untouched_bytes"] for each in merged["inputs"]] == [None, None, 114704], merged["inputs"]
assert [s["untouched_bytes"] for s in merged["sizes"] if s["size_bytes_min"] == 65536] == [114704], merged["sizes"]
assert [s.get("untouched_unknown_bytes") for s in merged["sizes"] if s["size_bytes_min"] == 16384] == [20000], merged["sizes"]
END_OF_CHECK
lifetimes --summary other.trace | grep -q touched && complain "a trace without touched pages has answers"
overhead --summary other.trace | grep -q touched && complain "a trace without touched pages has estimates"
printf 'malloc(8) = 10<1> stack=1\n#node 1 parent=0 frame=0\n' >stacks.trace
status=0; lifetimes --by=function --sort=untouched stacks.trace 2>err || status=$?
[ "$status" = 1 ] && grep -q 'touched pages were not recorded (needed by untouched)' err || complain "--sort=untouched: $(cat err)"

# The same count as awk's over the text.
python3 - >many.trace <<'END_OF_PROGRAM'
import random
random.seed(12)
print("#cmt text=1\n#cmt touched_min=16384")
live, tag, at = [], 0, 0x100000
for _ in range(4000):
    what = random.random()
    if what < 0.25 or not live:
        tag, size = tag + 1, random.randrange(8000, 300000)
        live.append((tag, at, size, [False] * ((size + 4095) // 4096)))
        print(f"malloc({size}) = {at:x}<{tag}>")
        at += size + 4095 & ~4095
    elif what < 0.45:
        block = live.pop(random.randrange(len(live)))
        print(f"free({block[1]:x}<{block[0]}>)")
    else:
        tag_, address, size, pages = random.choice(live)
        first = random.randrange(len(pages))
        if not pages[first]:
            pages[first] = True
            print(f"touch({address:x}<{tag_}>, 4096, {1 if first + 1 < len(pages) else 0}, {first * 4096})")
print("#cmt end=complete")
END_OF_PROGRAM
awk -F'[(,<>) =]+' '
  function end(tag) { if (size[tag] >= 16384) never += size[tag] - told[tag]; delete size[tag] }
  /^malloc/ { size[$4] = $2 }
  /^free/ { end($3) }
  /^touch/ { told[$3] += $5 == 0 ? size[$3] - $6 : 4096 }
  END { for (tag in size) end(tag); print never }' many.trace >counted
lifetimes --json many.trace | python3 -c 'import json, sys; print(sum(s["untouched_bytes"] or 0 for s in json.load(sys.stdin)["sizes"]))' |
  diff - counted || complain "the count of many.trace"
exit $failed
