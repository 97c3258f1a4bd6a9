# SIGTERM (as Ctrl-C) ends a worker that hangs, and the results so far are printed.
. "$SOURCE/tests/waiting.sh"
faulty=$BUILD/tests/cmtreplay/libfaulty_at_size.so
echo 'malloc(77777) = 1000<1>' > t.trace
cmtreplay --alloc=$faulty --alloc=libc --runs=1 --json t.trace > report.json 2> words &
replay=$!
until_true 'test -e hanging || ! kill -0 $replay'
test -e hanging
worker=$(cat /proc/$replay/task/$replay/children)
kill -TERM $replay
status=0
wait $replay || status=$?
test $status = 143  # as by the signal
grep -qx 'cmtreplay: interrupted; these are the results so far' words
/usr/bin/python3 -c '
import json
report = json.load(open("report.json"))
assert report["mode"]["interrupted"] is True
assert report["trace"]["events"] == 1'
for pid in $worker; do test ! -e /proc/$pid; done

# The finished cells of a matrix stay, and a message says how to continue.
rm hanging
printf 'malloc(8) = 1000<1>\nfree(1000<1>)\n' > small.trace
cmtreplay --alloc=$faulty --runs=1 --results=cells small.trace t.trace > table 2> words &
replay=$!
until_true 'test -e hanging || ! kill -0 $replay'
test -e hanging
kill -TERM $replay
status=0
wait $replay || status=$?
test $status = 143  # as by the signal
grep -qx 'cmtreplay: interrupted; 1 of 2 cells are in cells; the same command goes on with the others' words
test "$(ls cells | wc -l)" = 1
