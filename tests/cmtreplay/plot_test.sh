# --plot draws memory along the trace and over the recorded time, latencies and the tables, beside the usual report.
/usr/bin/python3 "$SOURCE/tests/cmtreplay/make_trace.py" 20000 11 > t.trace
awk '/^#/ { print; next } { print $0 " time=" 1000 * NR }' t.trace > timed.trace
cmtreplay --runs=1 --alloc=libc --alloc=null --plot=a.svg t.trace > table 2> words
grep -q '^allocator ' table
grep -q '^<svg ' a.svg
test "$(tail -c 7 a.svg)" = "</svg>"
for word in 'Memory along the trace' 'How long malloc took' 'How long free took' libc null live events; do
  grep -q ">$word</text>" a.svg
done
! grep -q 'recorded time' a.svg
grep -q '^<text .*class="mono">allocator' a.svg
cmtreplay --runs=1 --csv --alloc=libc --plot=b.svg timed.trace > table 2> words
grep -q '^allocator,library,' table
grep -q '>Memory over the recorded time</text>' b.svg
grep -q '>recorded time</text>' b.svg
cmtreplay --runs=1 --alloc=libc --plot=c.html timed.trace > table 2> words
grep -q '^<!DOCTYPE html>' c.html
grep -q 'cmt.replay/1' c.html
grep -q '<th>allocator</th><th>time</th>' c.html && grep -q '<tr><td>libc</td><td>' c.html && grep -q '<th>resident</th>' c.html
! grep -q '^allocator ' c.html  # the tables are no text
# Bold headings are on standard output alone.
cmtreplay --runs=1 --color=always --plot=d.svg t.trace > table 2> words
grep -q 'class="mono">allocator' d.svg && ! grep -q $'\x01' d.svg
cmtreplay --runs=1 --plot=none.svg /dev/null > table 2> words
grep -q '>Memory along the trace<' none.svg
# Files that cannot be written are refused.
fails() {
  local status=0
  cmtreplay "$@" t.trace > table 2> words || status=$?
  echo $status
}
test "$(fails --plot=a.gif)" = 2
grep -qF 'cmtreplay: --plot: expected a name that ends in .svg, .html, .png or .pdf, not a.gif' words
ln -s /dev/full full.svg
test "$(fails --plot=full.svg --runs=1)" = 1  # the tables are printed nevertheless
grep -q '^allocator ' table && grep -q 'No space left on device' words
test "$(fails --plot=full.svg --runs=1 timed.trace)" = 1
grep -q '^timed ' table && grep -q 'No space left on device' words
test "$(fails --plot=no/such.svg)" = 1
grep -qx 'cmtreplay: no/such.svg: No such file or directory' words
test "$(fails --verify --plot=v.svg)" = 2
grep -qF -- '--plot does not go with --verify' words
test ! -e v.svg
