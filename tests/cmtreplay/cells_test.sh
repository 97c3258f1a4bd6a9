# Cells are files. A cell is found again whatever other traces and allocators are asked for. Other options make other cells,
# and damaged files are reported at once.
/usr/bin/python3 "$SOURCE/tests/cmtreplay/make_trace.py" 500 11 > a.trace
printf 'memalign(64, 100) = 1000<1>\nfree(1000<1>)\n' > b.trace
cp a.trace copy.trace
mkdir one two three
cp "$BUILD/cmtreplay/libexample_bump.so" one/x.so
cp "$BUILD/tests/cmtreplay/libbroken_none.so" two/x.so
cp one/x.so three/x.so
run() { cmtreplay --runs=1 --results=res "$@" 2> words; }
files() { ls res | wc -l; }
fails() { status=0; cmtreplay "$@" > out 2> words || status=$?; echo $status; }

# With another library of the same name, another trace, libc, or a copy of the trace, the cell stays the same.
run --alloc=./one/x.so a.trace > table
grep -q '^time, to libc  *x.so$' table
before=$(cat res/a-*.x.so-*.json | cksum)
run --alloc=libc --alloc=./one/x.so --alloc=./two/x.so a.trace b.trace > table || true
test "$(files)" = 6
grep -q '^time, to libc  *libc  *./one/x.so  *./two/x.so$' table
run --alloc="$PWD/one/x.so" copy.trace > table
test "$(files)" = 6
grep -q '^copy  *[0-9]' table
test "$(cat $(grep -l '"asked": "./one/x.so"' res/a-*) | cksum)" = "$before"
run --alloc=./one/x.so --alloc=./three/x.so a.trace > table
test "$(files)" = 6
grep -qx 'cmtreplay: ./three/x.so: is the same build as ./one/x.so, and is run once' words
grep -q '^time, to libc  *x.so$' table

# Options that change figures are part of a cell. A board is of one set of options.
cpu=$(/usr/bin/python3 -c 'import os; print(min(os.sched_getaffinity(0)))')
cmtreplay --runs=2 --results=res --alloc=./one/x.so a.trace > table
grep -qx '1 cell of these traces and allocators left out, of other options or builds' table
cmtreplay --runs=1 --pin="$cpu" --results=res --alloc=./one/x.so a.trace > table
cmtreplay --runs=1 --seed=2 --results=res --alloc=./one/x.so a.trace > table
test "$(files)" = 9
test "$(fails --scoreboard=res)" = 1
grep -q 'replayed with different options, and cannot be compared: .*--runs=2 (1 cell)' words
grep -q -- "--runs=1 --pin=$cpu (1 cell)" words
test "$(fails --scoreboard=res --runs=2)" = 0
grep -q '^a  *[0-9]' out
grep -q 'cells* of these traces and allocators left out, of other options or builds' out
test "$(fails --scoreboard=res --runs=7)" = 1
grep -q 'res: no cell was replayed with these options; there are: ' words
test "$(fails --scoreboard=res --alloc=./one/x.so a.trace)" = 1
grep -q 'give the options of one of them' words
cmtreplay --scoreboard=res --runs=2 --alloc=./one/x.so a.trace > table
grep -q '^a  *[0-9]' table

# The board has the warnings of the replays, once for each kind.
mkdir small
cmtreplay --runs=6 --results=small --alloc=libc --alloc=./one/x.so b.trace > table
grep -qx '1 cell: has no memalign; emulated' table
grep -qx 'intervals: time, 95 %; memory, range of 3 runs' table
cmtreplay --scoreboard=small --json > board.json
/usr/bin/python3 -c '
import json
board = json.load(open("board.json"))
libc, bump = board["cells"]
assert [w["kind"] for w in bump["warnings"]][:1] == ["has no memalign; emulated"], bump["warnings"]
assert libc["plan"]["runs"] == 6 and libc["plan"]["memory_runs"] == 3 and len(libc["build"]) == 64
summary = board["summaries"][1]
assert summary["time"]["interval"] == "95 %" and summary["peak"]["interval"] == "range of 3 runs", summary'

# A damaged file is reported before anything runs, and its cell is measured again. A file that is no cell stays.
cell=$(ls small/*.libc-*)
head -c 100 "$cell" > part
cp part "$cell"
cmtreplay --tasks --runs=6 --results=small --alloc=libc --alloc=./one/x.so b.trace > tasks 2> words
grep -q "^cmtreplay: $cell:.*: counts as missing$" words
printf '1\topen\tb\tlibc\n2\tdone\tb\tx.so\n' | cmp - tasks
cmtreplay --runs=6 --results=small --alloc=libc --alloc=./one/x.so b.trace > table 2> words
test "$(grep -c 'counts as missing' words)" = 1
! grep -q 'could not be read' table
cmtreplay --scoreboard=small > table
echo '{}' > small/notes.json
test "$(fails --runs=6 --results=small --alloc=libc --alloc=./one/x.so b.trace)" = 1
grep -q '^cmtreplay: small/notes.json: not a cell: no "schema": counts as missing$' words
grep -q '^could not be read: small/notes.json: not a cell: no "schema"$' out
test "$(fails --scoreboard=small --json)" = 1
grep -q '"damaged_files": \[$\|"damaged_files": \["small' out

# Wrong use is refused: a task writes no picture, and a pipe cannot be read twice.
test "$(fails --task=1 --results=res --plot=x.svg a.trace)" = 2
test "$(fails --task=1 --results=res --json a.trace)" = 2
mkfifo pipe
test "$(fails a.trace pipe)" = 1
grep -qx 'cmtreplay: pipe: is no regular file, and a trace of a matrix is read more than once; copy it to one' words
