# The gate exits with 3 if a build is worse: here by memory, which does not depend on the load of the machine.
# The traces have one thread and one block at a time. A bump allocator takes new memory for each block.
calls() { for i in $(seq "$1"); do printf 'malloc(%d) = %d000<%d>\nfree(%d000<%d>)\n' "$2" "$i" "$i" "$i" "$i"; done; }
calls 100 5000 > a.trace
calls 50 9000 > b.trace
bump=$BUILD/cmtreplay/libexample_bump.so
cp "$bump" old.so
cp "$bump" new.so
rounds=3
gate() { status=0; cmtreplay --runs=$rounds "$@" > lines 2> words || status=$?; echo $status; }

printf 'malloc(8) = 1000<1>\nfree(1000<1>)\n' > small.trace
# Builds are equal, and three rounds are too few to be certain of a time.
test "$(gate --against=./old.so --alloc=./new.so a.trace b.trace)" = 1
grep -qx 'not judged: a: new.so: time: 3 rounds, needs 11' lines
rounds=11
test "$(gate --against=./old.so --alloc=./new.so --fail-if=time+900%,peak+2%,fragmentation+1% a.trace b.trace)" = 0
grep -qx '7 figures judged: none is worse with certainty' lines
rounds=3

# A bump allocator never reuses memory, and libc does.
test "$(gate --against=libc --alloc=./new.so --fail-if=peak+2%,fragmentation+1% a.trace)" = 3
grep -q '^worse: a: new.so: peak +[0-9.]* % (+[0-9.]* % to +[0-9.]* %, range of 10 runs), allowed +2.0 %$' lines
grep -q '^2 figures judged: [12] worse$' lines
test "$(gate --against=./new.so --alloc=libc --fail-if=peak+2% a.trace)" = 0
test "$(gate --against=libc --alloc=./new.so --fail-if=peak+2% --json a.trace)" = 3
/usr/bin/python3 -c '
import json
gate = json.load(open("lines"))["gate"]
assert [j["figure"] for j in gate] == ["peak"] and gate[0]["worse"] is True and gate[0]["change"]["ratio"] > 1.02'

test "$(gate --against=libc --alloc=./new.so --fail-if=peak+2% --csv --plot=gate.md a.trace)" = 3
grep -q '^a,new.so,peak,worse,[0-9.]*,' lines
grep -q '^- worse: a: new.so: peak' gate.md

# First only the new build crashes, then the old one.
printf 'malloc(66666) = 1000<1>\nfree(1000<1>)\n' > crash.trace
test "$(gate --against=libc --alloc="$BUILD/tests/cmtreplay/libfaulty_at_size.so" crash.trace)" = 3
grep -q '^worse: crash: libfaulty_at_size.so: died at event 1 of 2: signal' lines
test "$(gate --against="$BUILD/tests/cmtreplay/libfaulty_at_size.so" --alloc=libc --fail-if=peak+2% crash.trace)" = 1
grep -q '^not judged: crash: libc: the old build died at event 1 of 2: signal' lines

# With an earlier board as baseline the gate judges memory, and time only by its ratio to libc.
cmtreplay --runs=3 --json --alloc=./new.so a.trace crash.trace > old.json
test "$(gate --baseline=old.json --alloc=./new.so --fail-if=peak+2% a.trace)" = 0
sed -E 's/"(peak|start|mean|end)_resident_bytes": [0-9]+/"\1_resident_bytes": 4096/' old.json > small.json
test "$(gate --baseline=small.json --alloc=./new.so --fail-if=peak+2% a.trace)" = 3
grep -q '^worse: a: new.so: peak +' lines
sed 's/"cpu": .*/"cpu": "another",/' old.json > other.json
test "$(gate --baseline=other.json --alloc=./new.so --fail-if=time+3% a.trace)" = 1
grep -q '^not judged: a: new.so: time: the baseline was measured on another' lines
test "$(gate --baseline=old.json --alloc=./new.so small.trace)" = 1
grep -qx 'not judged: small: new.so: the baseline does not have it' lines
test "$(gate --baseline=old.json --alloc=./new.so --fail-if=peak+2% --touch=none a.trace)" = 1
grep -q '^not judged: a: new.so: the baseline was replayed with other options' lines

# Wrong use is refused.
test "$(gate --fail-if=peak+2% a.trace)" = 2
test "$(gate --against=./old.so a.trace)" = 2
grep -q -- '--alloc names the build that is judged' words
test "$(gate --against=./old.so --alloc=./old.so a.trace)" = 2
ln -s old.so link.so
test "$(gate --against=./old.so --alloc=./link.so a.trace)" = 2
grep -q -- '--against and --alloc name the same file' words
test "$(gate --against=./old.so --alloc=./new.so --results=cells a.trace)" = 2
test "$(gate --baseline=old.json --alloc=./new.so --results=cells a.trace)" = 2
test "$(gate --against=./old.so --alloc=./new.so --fail-if=speed+2% a.trace)" = 2
test "$(gate --against=./old.so --alloc=./new.so --fail-if=peak-2% a.trace)" = 2
test "$(gate --against=./no.so --alloc=./new.so a.trace)" = 1
test "$(gate --baseline=nothing.json --alloc=./new.so a.trace)" = 1
