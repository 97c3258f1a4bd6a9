# Checks lifetimes --baseline, a gate for programs, and that --merge adds up a list of summaries.
printf 'malloc(100) = 1000<1>\nmalloc(50) = 2000<2>\nfree(1000<1>)\nfree(2000<2>)\n' > old.trace
printf 'malloc(100) = 1000<1>\nmalloc(60) = 2000<2>\nmalloc(8) = 3000<3>\nfree(1000<1>)\nfree(2000<2>)\n' > new.trace
gate() { status=0; lifetimes "$@" > lines 2> words || status=$?; echo $status; }

test "$(gate --baseline=old.trace old.trace)" = 0
printf 'ok: allocations 2 -> 2 (+0.0 %%, allowed +1.0 %%)\nok: peak 150 B -> 150 B (+0.0 %%, allowed +2.0 %%)\nok: leaks 0 B -> 0 B (+0.0 %%, allowed +0.0 %%)\n' | cmp - lines
test "$(gate --baseline=old.trace new.trace)" = 3
grep -qx 'worse: allocations 2 -> 3 (+50.0 %, allowed +1.0 %)' lines
grep -qx 'worse: peak 150 B -> 168 B (+12.0 %, allowed +2.0 %)' lines
grep -qx 'worse: leaks 0 B -> 8 B (from none, allowed +0.0 %)' lines
test "$(gate --baseline=new.trace old.trace)" = 0
test "$(gate --baseline=old.trace --fail-if=peak+12%,bytes+20% new.trace)" = 0
test "$(gate --baseline=old.trace --fail-if=peak+11.9% new.trace)" = 3

# A change that the short form of a size does not show.
for size in 4840000 4840128; do printf 'malloc(%s) = 10<1>\n' $size > $size.trace; done
test "$(gate --baseline=4840000.trace 4840128.trace)" = 3
grep -qx 'worse: leaks 4,840,000 -> 4,840,128 bytes (+0.003 %, allowed +0.000 %)' lines
test "$(gate --baseline=4840000.trace 4840000.trace)" = 0
grep -qx 'ok: leaks 4.62 MiB -> 4.62 MiB (+0.0 %, allowed +0.0 %)' lines
# Shares that differ have as many digits as it takes to show that.
for size in 100000 101990 102000 102001; do printf 'malloc(%s) = 10<1>\nfree(10<1>)\n' $size > $size.trace; done
test "$(gate --baseline=100000.trace --fail-if=peak+2% 102001.trace)" = 3
grep -qx 'worse: peak 97.7 KiB -> 99.6 KiB (+2.001 %, allowed +2.000 %)' lines
test "$(gate --baseline=100000.trace --fail-if=peak+2% 102000.trace)" = 0
grep -qx 'ok: peak 97.7 KiB -> 99.6 KiB (+2.0 %, allowed +2.0 %)' lines
test "$(gate --baseline=100000.trace --fail-if=peak+2% 101990.trace)" = 0
grep -qx 'ok: peak 97.7 KiB -> 99.6 KiB (+1.99 %, allowed +2.00 %)' lines

# The functions follow by the first figure that is worse. Here "often" allocates often, and "leaky" leaks; neither is
# live at the peak, which "peak" alone makes.
functions() {
  printf '%s\n' '#cmt text=1' '#frame 1 module=0 address=1000' '#frame 2 module=0 address=2000' \
    '#frame 3 module=0 address=3000' '#name 1 function="often"' '#name 2 function="peak"' '#name 3 function="leaky"' \
    '#node 1 parent=0 frame=1' '#node 2 parent=0 frame=2' \
    '#node 3 parent=0 frame=3'
  awk -v often="$1" 'BEGIN { for (i = 1; i <= often; ++i) printf "malloc(8) = 10<%d> stack=1\nfree(10<%d>)\n", i, i }'
  printf 'malloc(9000) = 9000<9000> stack=2\nfree(9000<9000>)\n'
  awk -v leaks="$2" 'BEGIN { for (i = 1; i <= leaks; ++i) printf "malloc(10) = %d<%d> stack=3\n", i * 100, 9000 + i }'
  echo '#cmt end=complete'
}
functions 100 5 > base.trace
functions 102 5 > often.trace
functions 100 6 > leaky.trace
test "$(gate --baseline=base.trace often.trace)" = 3
grep -q '^worse: allocations 106 -> 108' lines
sed -n '/^$/,$p' lines | grep -q '^ *often '
test "$(gate --baseline=base.trace --fail-if=bytes+0% often.trace)" = 3
sed -n '/^$/,$p' lines | grep -q '^ *often '
test "$(gate --baseline=base.trace --fail-if=leaks+0% leaky.trace)" = 3
sed -n '/^$/,$p' lines | grep -q '^ *leaky '

# The baseline may be a summary.
lifetimes --summary --json old.trace > old.json
test "$(gate --baseline=old.json new.trace)" = 3
test "$(gate --baseline=old.json --json new.trace)" = 3
/usr/bin/python3 -c '
import json
gate = json.load(open("lines"))
assert gate["schema"] == "cmt.program_gate/1"
assert [(f["figure"], f["before"], f["after"], f["worse"]) for f in gate["figures"]] == [
    ("allocations", 2, 3, True), ("peak", 150, 168, True), ("leaks", 0, 8, True)]'

# Several traces: a list of summaries, which --merge takes as it does the single ones.
lifetimes --summary --json new.trace > new.json
lifetimes --summary --json old.trace new.trace > both.json
lifetimes --merge old.json new.json > by_two
lifetimes --merge both.json | cmp - by_two
lifetimes --merge both.json old.json --json | grep -c '"name": "' | grep -qx 3
test "$(gate --baseline=both.json new.trace)" = 1
grep -q 'both.json: a list of summaries is no baseline of one trace' words
lifetimes --merge --json old.json new.json > merged.json
test "$(gate --baseline=merged.json new.trace)" = 1
grep -q 'merged.json: a summary of several traces is no baseline of one trace' words
sed 's/"truncated": false/"truncated": true/' old.json > broken.json
test "$(gate --baseline=broken.json old.trace)" = 1
grep -q 'broken.json: breaks off: not judged' words
trace2cmt -o whole.cmt old.trace
head -c -8 whole.cmt > broken.cmt
test "$(gate --baseline=old.trace broken.cmt)" = 1
grep -q 'broken.cmt: breaks off: not judged' words
test "$(gate --baseline=broken.cmt old.trace)" = 1
grep -q 'broken.cmt: breaks off: not judged' words
# Events that the recorder has lost: the figures may hide what is worse. Each tool reports them.
{ printf '#cmt text=1\n#cmt recorder="libcmttrace 0.3.0"\n'; grep -v '^#' new.trace; printf '#cmt repairs=5\n#cmt end=complete\n'; } > lost.trace
trace2cmt -o lost.cmt lost.trace
lifetimes --json lost.cmt > lost.json 2> words
grep -qx 'lifetimes: lost.cmt: lacks 5 events that the recorder has lost' words
for lost in lost.trace lost.cmt lost.json; do
  test "$(gate --baseline=$lost old.trace)" = 1
  grep -q "$lost: lacks 5 events that the recorder has lost: not judged" words
done
test "$(gate --baseline=old.trace lost.cmt)" = 1
trace2cmt --info lost.cmt | grep -q 'repairs  *5, of which 5 are events that the recorder has lost'
sed 's/libcmttrace/other/' lost.trace > other.trace
test "$(gate --baseline=other.trace other.trace)" = 0
for none in none.trace none.cmt; do
  : > none.trace
  [ $none = none.trace ] || trace2cmt -o none.cmt none.trace 2> /dev/null
  test "$(gate --baseline=old.trace $none)" = 1
  grep -q "$none: has no events: not judged" words
  test "$(gate --baseline=$none old.trace)" = 1
  grep -q "$none: has no events: not judged" words
done
test "$(gate --summary old.trace new.trace)" = 2
grep -q -- '--summary of several traces needs --json' words
echo '[]' > empty.json
test "$(gate --merge empty.json)" = 1
grep -q 'empty.json: not a summary: an empty list' words


# A growth by just the share that is allowed is allowed, whatever doubles make of that share; one block more is not.
blocks() { awk -v count="$1" 'BEGIN { for (i = 1; i <= count; ++i) printf "malloc(8) = 1000<%d>\nfree(1000<%d>)\n", i, i }'; }
blocks 1000 >before.trace
for tenths in 1 3 11 23 40; do
  blocks $((1000 + tenths)) >just.trace
  blocks $((1001 + tenths)) >more.trace
  share=$((tenths / 10)).$((tenths % 10))
  test "$(gate --baseline=before.trace --fail-if=allocations+$share% just.trace)" = 0
  test "$(gate --baseline=before.trace --fail-if=allocations+$share% more.trace)" = 3
done

test "$(gate --fail-if=peak+1% new.trace)" = 2
test "$(gate --baseline=old.trace --fail-if=time+1% new.trace)" = 2
test "$(gate --baseline=old.trace --summary new.trace)" = 2
test "$(gate --baseline=no.trace new.trace)" = 1

# By phase: each that both traces have. A mark whose label begins with a bracket only ends a phase.
phases() { printf 'malloc(8) = %s00<1>\nmark("a")\n%smark("[end]")\nmalloc(7) = 9000<90>\nmark("b")\nmark("%s")\nmalloc(10) = 9100<91>\n' "$@"; }
phases 10 'malloc(100) = 2000<2>\n' c > old.trace
phases 10 'malloc(100) = 2000<2>\n' c > same.trace
sed -i 's/\\n/\n/' old.trace same.trace
sed 's/^mark("b")/mark("b")\nmalloc(1) = 9200<92>/; s/malloc(100)/malloc(101)/; s/"c"/"d"/' old.trace > new.trace
test "$(gate --baseline=old.trace --by=phase same.trace)" = 0
echo '6 figures judged: 0 worse' | cmp - lines
test "$(gate --baseline=old.trace --by=phase new.trace)" = 3
printf '%s\n' 'worse: b: allocations 0 -> 1 (from none, allowed +0.0 %)' 'worse: b: bytes 0 B -> 1 B (from none, allowed +1.0 %)' \
  'not judged: c: only in the baseline' 'not judged: d: not in the baseline' '4 figures judged: 2 worse' | cmp - lines
test "$(gate --baseline=old.trace --by=phase --fail-if=bytes+0% new.trace)" = 3
grep -qx 'worse: a: bytes 100 B -> 101 B (+1.0 %, allowed +0.0 %)' lines
test "$(gate --baseline=old.trace --by=phase --json new.trace)" = 3
/usr/bin/python3 -c '
import json
gate = json.load(open("lines"))
assert [(f["phase"], f["figure"], f["before"], f["after"]) for f in gate["figures"] if f["worse"]] == [
    ("b", "allocations", 0, 1), ("b", "bytes", 0, 1)], gate
assert (gate["only_before"], gate["only_after"]) == (["c"], ["d"])'
printf 'mark("other")\n' > other.trace
test "$(gate --baseline=old.trace --by=phase other.trace)" = 1
grep -q 'other.trace: has no phase of the baseline: not judged' words
# A phase may begin several times. Its figures are those of all; the functions are those of the first.
again() { printf '%s\n' '#cmt text=1' '#frame 1 module=0 address=1000' '#node 1 parent=0 frame=1' 'mark("a")' \
  'malloc(10) = 1000<1> stack=1' 'mark("b")' 'mark("a")' "malloc($1) = 2000<2> stack=1" '#cmt end=complete'; }
again 10 > again.trace
again 1000 > more.trace
test "$(gate --baseline=again.trace --by=phase more.trace)" = 3
grep -qx 'worse: a: bytes 20 B -> 1010 B (+4950.0 %, allowed +1.0 %)' lines
grep -qx '  of both @a, up to the next mark only; the phase begins several times' lines
printf 'malloc(8) = 1000<1>\n' > unmarked.trace
test "$(gate --baseline=old.trace --by=phase unmarked.trace)" = 1
grep -q 'unmarked.trace: has no marks (cmt_mark), and so no phases' words
test "$(gate --baseline=old.json --by=phase new.trace)" = 1
grep -q 'old.json: a summary has no phases: --by=phase needs a trace' words
test "$(gate --baseline=old.trace --by=phase broken.cmt)" = 1
test "$(gate --baseline=old.trace --by=phase --fail-if=peak+1% new.trace)" = 2
test "$(gate --baseline=old.trace --by=size new.trace)" = 2
grep -q -- '--baseline goes with --by=phase alone' words
test "$(gate --baseline=old.trace --by=phase --top=3 new.trace)" = 2
