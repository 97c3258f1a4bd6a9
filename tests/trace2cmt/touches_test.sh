# Touched pages and calls that give memory back, through all functions of trace2cmt. An independent count checks figures.

failed=0
complain() { echo "wrong: $*" >&2; failed=1; }
vectors=$SOURCE/format-spec/vectors
cat >pages.trace <<'END_OF_TRACE'
#cmt text=1
#cmt touched_min=16384
malloc(100) = 1010<1> time=1
malloc(65536) = 10010<2> thread=1 time=2
malloc(40000) = 40010<3> time=3
malloc(16384) = 60000<4> time=4
resident(10010<2>, 4096, 2, 0) thread=1 time=5
touch(10010<2>, 4096, 3, 8176) time=6
malloc_trim(64) time=7
mallopt("M_TRIM_THRESHOLD=65536") time=8
mark("filled") time=9
touch(10010<2>, 4096, 1, 20464) thread=1 time=10
touch(40010<3>, 4096, 0, 36848) time=11
mallctl("arena.0.purge") thread=1 time=12
free(10010<2>) thread=1 time=13
touch(40010<3>, 4096, 1, 0) time=14
realloc(40010<3>, 80000) = 40010<5> time=15
resident(40010<5>, 4096, 1, 0) time=16
free(60000<4>) time=17
#cmt end=complete
END_OF_TRACE
trace2cmt -o pages.cmt pages.trace
trace2cmt -s pages.cmt | cmp - pages.trace || complain "text to .cmt to text"

# Blocks from 16 KiB have 65,536, 40,000, 16,384 and 80,000 bytes. In <2>, the first 8,176 bytes were in memory, and 4 pages
# were touched. In <3>, the first 4,080 and the last 3,152 bytes were touched. In <4>, no byte was touched. In <5>, 4,080
# bytes were in memory.
for file in pages.trace pages.cmt; do
  trace2cmt --info --json $file >info.json
  python3 - <<'END_OF_CHECK' || complain "figures of $file"
import json
info = json.load(open("info.json"))
expected = {"touched_min_bytes": 16384, "watched_blocks": 4, "watched_bytes": 65536 + 40000 + 16384 + 80000,
            "touched_pages": 4 + 2, "touched_bytes": 4 * 4096 + 4080 + 3152, "maybe_touched_bytes": 8176 + 4080,
            "untouched_blocks": 1,
            "untouched_bytes": 65536 - 8176 - 4 * 4096 + 40000 - 4080 - 3152 + 16384 + 80000 - 4080}
assert {key: info[key] for key in expected} == expected, info
assert info["by_kind"] == {"malloc": 4, "free": 2, "realloc": 1, "mark": 1, "touch": 4, "resident": 2, "malloc_trim": 1,
                           "mallopt": 1, "mallctl": 1}, info
END_OF_CHECK
done
trace2cmt --info pages.cmt | grep -E '^  (recorded|touched|never)' >out
diff -u - out <<'END_OF_TEXT' || complain "the words of --info"
  touched_min    16384
  recorded       calls, addresses, times, touched pages of blocks from 16.0 KiB
  touched        23.1 KiB on 6 pages of 4 KiB; 12.0 KiB may have been in memory before: not known
  never touched  162 KiB to 174 KiB of 197 KiB in 4 blocks, of which 1 wholly
END_OF_TEXT

# A random trace, and an independent count with a flag for each page of a block.
python3 - >many.trace <<'END_OF_PROGRAM'
import random
random.seed(11)
print("#cmt text=1\n#cmt touched_min=16384")
live, tag, at = [], 0, 0x100000
for _ in range(4000):
    what = random.random()
    if what < 0.2 or not live:
        tag, size = tag + 1, random.randrange(8000, 300000)
        before = random.choice((0, 16, 2048))
        live.append((tag, at + before, size, [False] * ((size + before + 4095) // 4096), before))
        print(f"malloc({size}) = {at + before:x}<{tag}>")
        at += size + before + 4095 & ~4095
    elif what < 0.35:
        block = live.pop(random.randrange(len(live)))
        print(f"free({block[1]:x}<{block[0]}>)")
    else:
        tag_, address, size, pages, before = random.choice(live)
        first = random.randrange(len(pages))
        last = min(len(pages), first + random.randrange(1, 9))
        if any(pages[first:last]):
            continue
        pages[first:last] = [True] * (last - first)
        count = 0 if last == len(pages) else last - first
        print(f"touch({address:x}<{tag_}>, 4096, {count}, {max(0, first * 4096 - before)})")
print("#cmt end=complete")
END_OF_PROGRAM
# The bytes of all blocks that were live after the event FROM or made later, and how many of them were never touched.
count_after() {  # count_after FROM
  awk -F'[(,<>) =]+' -v from="$1" '
    function end(tag) {
      if (size[tag] >= 16384 && NR - 2 > from) { all += size[tag]; never += size[tag] - told[tag] }
      delete size[tag]
    }
    /^malloc/ { size[$4] = $2; low = substr($3, length($3) - 2); page[$4] = low == "010" ? 16 : low == "800" ? 2048 : 0 }
    /^free/ { end($3) }
    /^touch/ {
      begin = $6; stop = $5 == 0 ? size[$3] : begin + $5 * $4 - (begin == 0 ? page[$3] : 0)
      told[$3] += (stop < size[$3] ? stop : size[$3]) - begin
    }
    END { for (tag in size) end(tag); print all, never }' many.trace
}
figures_of() { trace2cmt --info --json "$1" | python3 -c 'import json, sys; i = json.load(sys.stdin); print(i["watched_bytes"], i["untouched_bytes"])'; }
figures_of many.trace | diff - <(count_after 0) || complain "the count of many.trace"
trace2cmt --verify many.trace >out || complain "many.trace: $(cat out)"
trace2cmt -o many.cmt many.trace
trace2cmt -s many.cmt | cmp - many.trace || complain "many.trace to .cmt to text"

# --verify: a page that the block does not have, a page for the second time, a resident page after a touched one, no pages.
for file in touches_wrong.text touches_wrong.cmt; do
  status=0; trace2cmt --verify "$vectors/$file" >out || status=$?
  [ "$status" = 1 ] || complain "$file: $status"
  sed -E 's/^[^ ]*touches_wrong[^ ]* (event ([0-9]+): )?//; s/^offset 0x[0-9a-f]+: event //' out >words
  for fault in 'it names pages that an earlier event has named, of 10010<1>' 'it names pages that are not in 10010<1>' \
    'it names pages that were in memory before, after an event of touched pages, of 10010<1>'; do
    grep -qF "$fault" words || complain "$file: no $fault in $(cat out)"
  done
  grep -q '3 more of the kind' out || complain "$file: $(cat out)"
done
printf 'malloc(20000) = 10<1>\nfree(10<1>)\ntouch(10<1>, 4096, 1, 0)\ntouch(<9>, 4096, 1, 0)\ntouch(0, 4096, 1, 0)\n' >ended.trace
trace2cmt --verify ended.trace >out && complain "touches of no live block pass"
[ "$(grep -c 'ended.trace:3: its tag contradicts the events before: dropped' out)" = 1 ] && grep -q '2 more' out || complain "$(cat out)"

# A slice has the touched pages of the blocks that live at its start. Consecutive runs become one.
trace2cmt -s --slice=9: pages.cmt >out
diff -u - <(head -n 14 out) <<'END_OF_SLICE' || complain "a slice"
#cmt text=1
#cmt touched_min=16384
#cmt slice=9:
malloc(100) = 1010<1> time=1
malloc(65536) = 10010<2> thread=1 time=2
resident(10010<2>, 4096, 2, 0) thread=1 time=2
touch(10010<2>, 4096, 3, 8176) thread=1 time=2
malloc(40000) = 40010<3> time=3
malloc(16384) = 60000<4> time=4
mark("slice 9:") time=9
touch(10010<2>, 4096, 1, 20464) thread=1 time=10
touch(40010<3>, 4096, 0, 36848) time=11
mallctl("arena.0.purge") thread=1 time=12
free(10010<2>) thread=1 time=13
END_OF_SLICE
for from in 100 900 2500; do
  trace2cmt --slice=$from: -o slice.cmt many.trace
  trace2cmt --verify slice.cmt >out || complain "a slice from $from: $(cat out)"
  figures_of slice.cmt | diff - <(count_after $from) || complain "figures of a slice from $from"
done

# --thread: pages of its blocks stay, whatever thread touched them. Pages of other blocks are dropped.
trace2cmt -s --thread=1 pages.cmt >out
diff -u - out <<'END_OF_THREAD' || complain "the events of a thread"
#cmt text=1
#cmt touched_min=16384
malloc(65536) = 10010<2> thread=1 time=2
resident(10010<2>, 4096, 2, 0) thread=1 time=5
touch(10010<2>, 4096, 3, 8176) time=6
mark("filled") time=9
touch(10010<2>, 4096, 1, 20464) thread=1 time=10
mallctl("arena.0.purge") thread=1 time=12
free(10010<2>) thread=1 time=13
#cmt end=complete
END_OF_THREAD

# An anonymous trace has no addresses, and all that a replay needs.
trace2cmt -s --anonymise pages.cmt | grep -E '^(#cmt touched|touch|malloc_|mallopt|mallctl)' >out
diff -u - out <<'END_OF_ANONYMOUS' || complain "anonymous"
#cmt touched_min=16384
touch(<2>, 4096, 3, 8176) time=5
malloc_trim(64) time=6
mallopt("M_TRIM_THRESHOLD=65536") time=7
touch(<2>, 4096, 1, 20464) thread=1 time=9
touch(<3>, 4096, 0, 36848) time=10
mallctl("arena.0.purge") thread=1 time=11
touch(<3>, 4096, 1, 0) time=13
END_OF_ANONYMOUS
# Without addresses, a first page may have only one byte of the block, so the second page may begin there.
cat >neighbours.trace <<'END_OF_NEIGHBOURS'
#cmt text=1
#cmt page_size=4096
malloc(40000) = 7f0000000010<1>
resident(7f0000000010<1>, 4096, 1, 0)
touch(7f0000000010<1>, 4096, 2, 4080)
free(7f0000000010<1>)
END_OF_NEIGHBOURS
trace2cmt -s --anonymise neighbours.trace >hidden.trace
trace2cmt --verify hidden.trace >out || complain "pages beside each other, anonymous: $(cat out)"
sed 's/4096, 2, 4080/4096, 2, 0/' hidden.trace >twice.trace
trace2cmt --verify twice.trace >out && complain "a page told twice, anonymous: $(cat out)"

# Two traces become one with the larger touched_min, and with none if one of them has none.
sed 's/touched_min=16384/touched_min=32768/' pages.trace >coarse.trace
trace2cmt -s pages.trace coarse.trace >both.trace
grep -q '^#cmt touched_min=32768$' both.trace || complain "two traces: $(head -n 3 both.trace)"
[ "$(grep -c '^touch' both.trace)" = 8 ] || complain "two traces have $(grep -c '^touch' both.trace) touches"
trace2cmt --verify both.trace >out || complain "two traces: $(cat out)"
trace2cmt -s pages.trace ended.trace 2>/dev/null | grep -q touched_min && complain "one of two does not tell"

# Tables have the offset, the number of pages and their size. Other forms leave touched pages out and report the loss.
trace2cmt --to=csv pages.cmt | tr -d '\r' | grep -E 'touch|mallopt' >out
diff -u - out <<'END_OF_TABLE' || complain "the table"
6,touch,0,6,8176,3,4096,,,,2,65552,65536,,,,
8,mallopt,0,8,,,,,,,,,,,,"M_TRIM_THRESHOLD=65536",
10,touch,1,10,20464,1,4096,,,,2,65552,65536,,,,
11,touch,0,11,36848,0,4096,,,,3,262160,40000,,,,
14,touch,0,14,0,1,4096,,,,3,262160,40000,,,,
END_OF_TABLE
for form in legacy rep; do
  trace2cmt --to=$form -o pages.$form pages.cmt 2>err
  grep -q "$form cannot express .*; 9 touched pages, and calls that give memory back: left out;" err || complain "$form: $(cat err)"
done
exit $failed
