# --verify finds the fault of each allocator that breaks one promise. It names event, call and address, and continues.
cat > t.trace << 'END'
malloc(100) = 1000<1>
malloc(333) = 2000<2>
aligned_alloc(256, 512) = 3000<3>
calloc(3, 111) = 4000<4>
realloc(1000<1>, 333) = 5000<5>
malloc(100) = 6000<6>
free(2000<2>)
posix_memalign(64, 64) = 7000<7>
free(6000<6>)
free(7000<7>)
END
trace=t.trace
broken() {  # broken FAULT KIND LINE: the allocator with FAULT has a first finding of KIND that reads as LINE
  local library=$BUILD/tests/cmtreplay/libbroken_$1.so status=0
  cmtreplay --verify --alloc="$library" $trace > lines 2> words || status=$?
  if ! { test $status = 1 && head -1 lines | grep -qx -- "$library: $3"; }; then
    echo "$1: status $status"; cat lines words; return 1
  fi
  tail -1 lines | grep -qx "$library: to stop before .*: gdb -ex run --args cmtreplay --verify --alloc=$library $trace --until=[0-9]*"
  tail -2 lines | head -1 | grep -qx "$library: [1-9][0-9]* faults\{0,1\} in [0-9]* events\{0,1\}, [0-9]* blocks\{0,1\}, .*B.*"
  test ! -s words
  cmtreplay --verify --json --alloc="$library" $trace > report.json || status=$?
  /usr/bin/python3 -c '
import json, sys
report = json.load(open("report.json"))
assert report["schema"] == "cmt.replay/1"
verified, = report["verified"]
assert verified["faults"] >= 1 and verified["findings"][0]["fault"] == sys.argv[1], verified' "$2"
}
broken misaligned misaligned 'event 3: aligned_alloc(256, 512) = [0-9a-f]*: is no multiple of 256'
broken misaligned_by_size misaligned 'event 2: malloc(333) = [0-9a-f]*8: is no multiple of 16'
broken overlap overlap 'event 2: malloc(333) = [0-9a-f]*: overlaps the live block at [0-9a-f]* (100 bytes, allocated at event 1)'
broken twice overlap 'event 2: malloc(333) = [0-9a-f]*: overlaps the live block at [0-9a-f]* (100 bytes, allocated at event 1)'
broken contents contents 'event 9: free([0-9a-f]*): byte 0 of 100 is not what was written to it (100 bytes, allocated at event 6)'
grep -q '"old_event": 6' report.json
grep -q ': to stop before event 9: .* --until=9$' lines
contents=$(sed -n 's/.*: to stop before event 9: gdb -ex run //p' lines)
broken moved moved 'event 5: realloc(\.\.\., 333) = [0-9a-f]*: byte 50 is not what it was before the realloc (100 bytes, allocated at event 1)'
broken not_zero not_zero 'event 4: calloc(3, 111) = [0-9a-f]*: byte 0 is not 0'
broken usable usable_size 'event 2: malloc(333) = [0-9a-f]*: has a usable size of 332'
broken usable_all usable_size 'event 2: malloc(333) = [0-9a-f]*: has a usable size of 18446744073709551615'
broken usable_other usable_size 'event 3: aligned_alloc(256, 512) = .*: has usable bytes in common with the live block at .* (333 bytes, allocated at event 2)'
broken impossible impossible 'after the last event: malloc([0-9]*) = [0-9a-f]*: is not NULL, and nothing can be so large'
broken product impossible 'after the last event: calloc([0-9]*, 2) = [0-9a-f]*: is not NULL, and nothing can be so large'
broken lost lost 'after the last event: realloc(\.\.\., [0-9]*) = .*: byte 0 changed although the realloc was refused'
# Calls that succeeded when they were recorded and are refused now.
broken refuses refused 'event 2: malloc(333) = NULL: was not refused when it was recorded'
test "$(grep -c 'was not refused when it was recorded' lines)" = 3
grep -q ': 3 faults in 10 events, 4 blocks, .*; refused 3 calls$' lines
# The failing side of calls.
broken keeps_errno error 'after the last event: malloc([0-9]*) = NULL: errno is 0, not ENOMEM'
broken rounds impossible 'after the last event: pvalloc(18446744073709551551) = [0-9a-f]*: is not NULL, and nothing can be so large'
broken narrow impossible 'after the last event: reallocarray(\.\.\., 4, [0-9]*) = [0-9a-f]*: is not NULL, and nothing can be so large'
broken error error 'after the last event: posix_memalign(0, 100) = NULL: returned 12 (Cannot allocate memory), not EINVAL'
broken any_alignment impossible 'after the last event: posix_memalign(0, 100) = [0-9a-f]*: is not refused, and the alignment is not valid'
broken pointer pointer 'after the last event: posix_memalign(64, [0-9]*) = 0: wrote that pointer although it failed'
# Blocks without bytes that have one address.
printf 'malloc(8) = 1000<1>\nmalloc(0) = 2000<2>\nmalloc(0) = 3000<3>\nfree(2000<2>)\nfree(3000<3>)\n' > empty.trace
trace=empty.trace
broken empty overlap 'event 3: malloc(0) = \([0-9a-f]*\): overlaps the live block at \1 (0 bytes, allocated at event 2)'
grep -q ': 1 fault in 5 events' lines
# Usable bytes that reach too far are found although the trace has no neighbour.
echo 'malloc(8) = 1000<1>' > alone.trace
trace=alone.trace
broken usable_aligned usable_size 'after the last event: .*: has usable bytes in common with the live block at .*'
trace=t.trace
cmtreplay --verify --alloc="$BUILD/tests/cmtreplay/libbroken_none.so" --alloc=libc t.trace > lines
test "$(wc -l < lines)" = 2
test "$(grep -c ': no faults in 10 events, 7 blocks, ' lines)" = 2

# An alignment that is no power of two has no rule.
printf 'aligned_alloc(7, 100) = 1000<1>\naligned_alloc(3, 100) = 2000<2>\naligned_alloc(5, 300) = 3000<3>\n' > odd.trace
cmtreplay --verify --alloc="$BUILD/tests/cmtreplay/libbroken_none.so" --alloc=libc odd.trace > lines

# Allocators in use have no fault, with every kind of event, except:
#
# - Not all of them set errno.
#
# - tcmalloc 2.10 returns a block for a pvalloc of too much.
#
# - scudo refuses an aligned_alloc whose size is no multiple of the alignment, as C11 had it.
/usr/bin/python3 "$SOURCE/tests/cmtreplay/make_trace.py" 20000 > every.trace
for name in libc jemalloc tcmalloc tbb scudo; do
  if cmtreplay --alloc=$name --runs=1 /dev/null > /dev/null 2> words; then
    cmtreplay --verify --json --alloc=$name every.trace > report.json || true
    /usr/bin/python3 - "$name" << 'END'
import json, sys
name = sys.argv[1]
verified, = json.load(open("report.json"))["verified"]
assert verified["death"] is None and verified["blocks"] > 1000, verified
for finding in verified["findings"]:
    text = finding["call"] + ": " + finding["text"]
    known = {"tcmalloc": ("impossible", "pvalloc"), "scudo": ("refused", "aligned_alloc")}.get(name, ("none", "none"))
    is_known = finding["fault"] == known[0] and finding["call"].startswith(known[1])
    assert is_known or (name != "libc" and finding["event"] is None and finding["fault"] == "error"), name + ": " + text
END
  else
    echo "skipped: $(cat words)"
  fi
done

# mimalloc 2.0.9 (Debian 12) assumes that a block of 512 bytes is at a multiple of 512.
for ((tag = 1; tag <= 20; ++tag)); do echo "posix_memalign(512, 512) = ${tag}000<$tag>"; done > aligned.trace
status=0
if ! cmtreplay --alloc=mimalloc --runs=1 /dev/null > /dev/null 2> words; then
  echo "skipped: $(cat words)"
elif test "$(dpkg-query -W -f '${Version}' libmimalloc2.0 2> /dev/null)" = 2.0.9+ds-2; then
  cmtreplay --verify --alloc=mimalloc aligned.trace > lines || status=$?
  test $status = 1
  grep -q '^mimalloc: event [0-9]*: posix_memalign(512, 512) = [0-9a-f]*: is no multiple of 512$' lines
else
  echo "skipped: mimalloc is another version"
fi

# A crash is a finding, too. The findings so far are printed, and the other allocators are still verified.
printf 'malloc(10) = 1000<1>\nmalloc(66666) = 2000<2>\n' > dies.trace
status=0
cmtreplay --verify --alloc="$BUILD/tests/cmtreplay/libfaulty_at_size.so" --alloc=libc dies.trace > lines 2> words || status=$?
test $status = 1
grep -q ': died at event 2 of 2: signal' lines
grep -q ': to stop before event 2: ' lines
test ! -s words
grep -q ': 0 faults in the 1 event before it died, 1 block, 10 B' lines
grep -q '^libc: no faults in 2 events' lines

# A crash after the last event is not reported as one at event 0.
echo 'malloc(10) = 1000<1>' > ends.trace
faulty=$BUILD/tests/cmtreplay/libfaulty_at_size.so
status=0
cmtreplay --verify --alloc="$faulty" ends.trace > lines 2> words || status=$?
test $status = 1
grep -qx "$faulty: after the last event: malloc([0-9]*): ended the process instead of failing" lines
grep -qx "$faulty: died after the last event: signal [0-9]* (.*)" lines
grep -q ': to stop before that: .* ends.trace --until=2$' lines
grep -qx "$faulty: 1 fault in 1 event, 1 block, 10 B; has no usable size to check" lines
cmtreplay --verify --json --alloc="$faulty" ends.trace > report.json 2> words || true
grep -q '"death_event": null' report.json

# An allocator that never returns counts as hanging, at its start and after the last event.
hangs() {  # hangs FAULT MESSAGE: the allocator with FAULT hangs, with MESSAGE
  local library=$BUILD/tests/cmtreplay/libbroken_$1.so status=0
  cmtreplay --verify --timeout=5s --alloc="$library" ends.trace >"$1.lines" 2>"$1.words" || status=$?
  [ $status = 1 ] && cat "$1.lines" "$1.words" | sed 's/^cmtreplay: //' | grep -qx "$library: $2" || { echo "$1: $status"; cat "$1.words"; return 1; }
}
hangs starts 'a process that loads it has not started for 5 s' &
hangs hangs 'died after the last event: no call has returned for 5 s'
wait $!
grep -q ': after the last event: malloc([0-9]*): did not return instead of failing$' hangs.lines

# --until stops before an event, in the thread that makes its call. Without a debugger that ends the process.
ulimit -c 0
stops() {  # stops N WORDS: by SIGTRAP, after these words
  local status=0
  cmtreplay --verify --alloc=libc --until=$1 t.trace > lines 2> words || status=$?
  test $status = 133 && test ! -s lines && grep -qx "cmtreplay: libc: stops $2" words || { echo "until $1: $status"; cat words; return 1; }
}
stops 1 'before event 1 of 10'
stops 11 'after the last event'
status=0
cmtreplay --verify --alloc=libc --until=12 t.trace > lines 2> words || status=$?
test $status = 1
grep -qx 'cmtreplay: --until: the trace has 10 events; one more stops at its end' words

# Calls that the library lacks are emulated, which a message says. So is what a program gets that preloads the library.
bump=$BUILD/cmtreplay/libexample_bump.so
printf 'malloc(8) = 1000<1>\nmemalign(64, 64) = 2000<2>\nfree(2000<2>)\n' > lacks.trace
lacks="cmtreplay: $bump: has no memalign; emulated. A program would get such blocks from the C library, and give them to this library's free"
for how in --verify '--verify --json' '--verify --until=2' --runs=1; do
  cmtreplay $how --alloc="$bump" lacks.trace > lines 2> words || test "$how $?" = '--verify --until=2 133'
  grep -qxF "$lacks" words || { echo "$how: $(cat words)"; exit 1; }
done
cmtreplay --verify --alloc="$bump" ends.trace > lines 2> words
test ! -s words

if command -v gdb > /dev/null && gdb -nx -batch -ex run --args true 2> /dev/null | grep 'exited normally' > /dev/null; then
  eval "gdb -nx -batch -iex 'set debuginfod enabled off' -ex run -ex bt -ex continue $contents" > lines 2> words || true
  grep -q 'received signal SIGTRAP' lines
  grep -q '^#[0-9]* .*stop_before_event' lines
  grep -q ': event 9: free(.*): byte 0 of 100 is not what was written' lines
  grep -q 'exited normally' lines
else
  echo "skipped: gdb is not installed or may not trace"
fi
