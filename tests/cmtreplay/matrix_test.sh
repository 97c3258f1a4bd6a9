# Several traces on several allocators make a cell each, which is stored as a file and not run again.
/usr/bin/python3 "$SOURCE/tests/cmtreplay/make_trace.py" 2000 11 > a.trace
/usr/bin/python3 "$SOURCE/tests/cmtreplay/make_trace.py" 1000 3 > b.trace
bump=$BUILD/cmtreplay/libexample_bump.so
run() { cmtreplay --runs=2 --alloc=libc --alloc="$bump" --results=res "$@"; }
run a.trace b.trace > table
test "$(ls res | wc -l)" = 4
grep -q '^time, to libc  *libc  *libexample_bump.so$' table
grep -q '^a  *1.00  *[0-9]' table
grep -q '^geometric mean  *1.00  *[0-9]' table
for title in 'peak memory, to libc' 'mean memory, to libc' 'ns a call' fragmentation 'p99.9 of malloc, ns' 'page faults'; do
  grep -q "^$title " table
done

# Cells that are there are not run again; missing ones are.
sum() { cat res/*.json | cksum; }
before=$(sum)
run a.trace b.trace > again
cmp table again
test "$(sum)" = "$before"
rm res/b-*.libc-*
run --tasks a.trace b.trace > tasks
printf '1\tdone\ta\tlibc\n2\tdone\ta\tlibexample_bump.so\n3\topen\tb\tlibc\n4\tdone\tb\tlibexample_bump.so\n' | cmp - tasks
status=0
cmtreplay --scoreboard=res > board || status=$?
test $status = 1
grep -qx 'missing: b on libc' board
grep -qx '1 cell of 4 missing' board
run a.trace b.trace > again
test "$(ls res | wc -l)" = 4

# A folder is read as its traces. A trace that is there twice is taken once.
mkdir folder
cp a.trace b.trace folder
cp a.trace folder/copy.trace
echo no trace > folder/notes.txt
run folder > table
cmp again table

# All forms of output work, after a run and for a folder of cells.
run --json a.trace b.trace > run.json
run --csv a.trace b.trace > run.csv
cmtreplay --scoreboard=res --json > board.json
cmtreplay --scoreboard=res > board
cmp table board
/usr/bin/python3 -c '
import csv, json
run, board = json.load(open("run.json")), json.load(open("board.json"))
assert run == board
assert run["schema"] == "cmt.board/1" and run["reference"] == "libc" and run["missing_cells"] == 0
assert [t["name"] for t in run["traces"]] == ["a", "b"] and len(run["cells"]) == 4
for cell in run["cells"]:
    assert cell["schema"] == "cmt.cell/1" and cell["outcome"] == "measured"
    assert len(cell["runs"]["wall_ns"]) == len(cell["reference_runs"]["wall_ns"]) == 2
    assert len(cell["trace"]["sha256"]) == len(cell["allocator"]["sha256"]) == 64
a = [c for c in run["cells"] if c["trace"]["name"] == "a"]
assert a[0]["session"] == a[1]["session"] and a[0]["runs"] == a[1]["reference_runs"]
rows = list(csv.DictReader(open("run.csv")))
assert len(rows) == 4 and rows[0]["state"] == "measured" and float(rows[0]["time_ratio"]) == 1'

# A trace with more threads than can be replayed is named, and the others are measured.
for ((thread = 0; thread <= 65600; ++thread)); do echo "malloc(8) = ${thread}000<$((thread + 1))> thread=$thread"; done > crowd.trace
status=0
cmtreplay --runs=1 a.trace crowd.trace > table 2> words || status=$?
test $status = 1
grep -q '^a  *1.00' table
grep -qx 'cmtreplay: crowd.trace: more than 65,536 threads live at once; --threads=1 replays all calls on one thread' words
cmtreplay --runs=1 --threads=1 crowd.trace > table 2> words

# The board is drawn as a picture, as a page and as Markdown.
for form in svg md; do cmtreplay --scoreboard=res --plot=board.$form > /dev/null 2> words; done
test "$(tail -c 7 board.svg)" = "</svg>"
! grep -q 'page faults' board.svg && grep -q 'intervals: time' board.svg
grep -q '>Time against peak memory, geometric means: left and low is good</text>' board.svg
grep -q '>libexample_bump.so</text>' board.svg
cmtreplay --scoreboard=res --plot=board.html > /dev/null 2> words
grep -q 'cmt.board/1' board.html
if grep -q 'built without uPlot' words; then
  echo "skipped: the panels of a page: $(cat words)"
else
  grep -q 'page faults' board.html
fi
grep -q '^| libc | 1.00 | 1.00 | 1.00 | 2 of 2 | - |$' board.md
test "$(cmtreplay --scoreboard=res --plot=board.gif 2>&1 | head -1)" = \
  'cmtreplay: --plot: expected a name that ends in .svg, .html, .png, .pdf or .md, not board.gif'

# The suite has the traces of a MANIFEST, whose hashes have to be those of the MANIFEST.
{ printf 'file\tprogram\tevents\tquick\tsha256\n'
  printf 'a.trace\tmade up\t2000\tno\t%s\n' "$(sha256sum < folder/a.trace | cut -d' ' -f1)"
  printf 'b.trace\tmade up\t1000\tyes\t%s\n' "$(sha256sum < folder/b.trace | cut -d' ' -f1)"; } > folder/MANIFEST
CMT_CORPUS=folder cmtreplay --suite=quick --csv > suite.csv
test "$(cut -d, -f1-3 suite.csv)" = "$(printf 'trace,allocator,state\nb,libc,measured')"
CMT_CORPUS=folder cmtreplay --suite --tasks --results=cells | cut -f3 | paste -sd, | grep -qx a,b
sed -i '2,$s/[0-9a-f]*$/00/' folder/MANIFEST
status=0
CMT_CORPUS=folder cmtreplay --suite > out 2> words || status=$?
test $status = 1
grep -q 'is not the trace of the MANIFEST: its SHA-256 is [0-9a-f]*$' words
alone=$(mktemp -d)
cp "$BUILD/cmtreplay/cmtreplay" "$BUILD/cmtreplay/cmtreplay-worker" "$alone"
status=0
env -u CMT_CORPUS "$alone/cmtreplay" --suite > out 2> words || status=$?
rm -r "$alone"
test $status = 1
grep -qE "^cmtreplay: the suite is not installed: no .*/MANIFEST; install the package cmt-corpus, or set CMT_CORPUS to the folder corpus/ of cmt's sources$" words

# A crash, and a file that is no trace, make cells with their reason, and stop nothing.
at_size=$BUILD/tests/cmtreplay/libfaulty_at_size.so
faulty=$BUILD/tests/cmtreplay/libbroken_overlap.so
echo 'free(' > bad.trace
printf 'malloc(8) = 1000<1>\nfree(1000<1>)\n' > small.trace
printf 'malloc(66666) = 1000<1>\nfree(1000<1>)\n' > crash.trace
printf 'malloc(88888) = 1000<1>\nfree(1000<1>)\n' > refused.trace
status=0
cmtreplay --runs=1 --alloc="$at_size" --results=bad bad.trace crash.trace refused.trace small.trace > table 2> words || status=$?
test $status = 1
grep -q '^cmtreplay: bad.trace:1: ' words
grep -q '^bad  *not replayed$' table
grep -q '^crash  *died$' table
grep -q '^refused  *refused$' table
grep -q '^small  *[0-9]' table
grep -q '^crash: libfaulty_at_size.so: died: at event 1 of 2: signal ' table
test "$(ls bad | wc -l)" = 3  # the file that is no trace has no cell: it may be repaired
printf 'malloc(64) = 1000<1>\nmalloc(333) = 2000<2>\nfree(1000<1>)\nfree(2000<2>)\n' > odd.trace
status=0
cmtreplay --verify --alloc=libc --alloc="$faulty" --results=bad small.trace odd.trace > table 2> words || status=$?
test $status = 1
grep -q '^faults  *libc  *libbroken_overlap.so$' table
grep -q '^odd  *0  *[1-9]' table
grep -q 'odd: libbroken_overlap.so: broke [0-9,]* promises* (--verify)' table
grep -qx -- '--verify of one allocator on one trace lists its faults, and how to stop before the first in gdb' table

cmtreplay --verify --json --results=verified bad.trace > bad.json 2> words || status=$?
/usr/bin/python3 -c '
import json
board = json.load(open("bad.json"))
assert board["summaries"][0]["faults"] is None and board["allocators"][0]["faults"] is None'

# A worker that is killed from outside says nothing about its allocator.
printf 'malloc(99999) = 1000<1>\nfree(1000<1>)\n' > killed.trace
status=0
cmtreplay --runs=1 --alloc="$at_size" --results=killed killed.trace > table 2> words || status=$?
test $status = 1
grep -q '^cmtreplay: killed: .*the worker was killed, perhaps as memory was short: not stored$' words
test "$(ls killed | wc -l)" = 0

# A name may have a tab and an end of line.
odd=$(printf 'x\ty\nz.trace')
cp small.trace "$odd"
cmtreplay --tasks --results=odd "$odd" | cut -f3 | grep -qx 'x y z'

# Cells that cannot be compared, damaged cells and wrong use are reported.
fails() { status=0; cmtreplay "$@" > out 2> words || status=$?; echo $status; }
mkdir mixed
cp res/a-*.libc-* mixed
cmtreplay --runs=1 --touch=none --results=mixed a.trace > table
test "$(fails --scoreboard=mixed)" = 1
grep -q 'replayed with different options' words
echo '{' > res/damaged.json
test "$(fails --scoreboard=res)" = 1
grep -q '^cmtreplay: res/damaged.json.*not valid JSON$' words
grep -q '^a  *1.00  *[0-9]' out
grep -q '^could not be read: res/damaged.json.*not valid JSON$' out
test "$(fails --scoreboard=nowhere)" = 1
mkdir empty
test "$(fails --scoreboard=empty)" = 1
grep -qx 'cmtreplay: empty: has no cells' words
test "$(fails --task=1 a.trace)" = 2
test "$(fails --task=0 --results=res a.trace)" = 2
test "$(fails --task=2 --results=other a.trace)" = 2
test "$(fails --suite=slow)" = 2
test "$(fails -v a.trace b.trace)" = 2
test "$(fails --results=)" = 2
test "$(fails a.trace -)" = 2
mkdir none
test "$(fails none)" = 1
grep -q 'none: the folder has no .cmt and no .trace' words
