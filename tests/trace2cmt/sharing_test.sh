# --thread, several files, --anonymise: which events stay, and that they replay.

failed=0
complain() { echo "wrong: $*" >&2; failed=1; }
. "$SOURCE/tests/trace2cmt/every_kind.sh"
write_many 30000

# A thread's events, with other threads' frees of its blocks, and without its frees of their blocks.
cat >three.trace <<'END'
free(90<5>) thread=1
malloc(1) = 10<10>
malloc(2) = 20<11> thread=1
malloc(3) = 30<12> thread=2
mark("half") thread=2
free(20<11>) thread=2
realloc(10<10>, 4) = 40<13> thread=1
free(30<12>) thread=1
realloc(40<13>, 5) = 50<14> thread=2 time=7
realloc(50<14>, 6) = 0 thread=1
reallocarray(50<14>, 2, 7) = 60<15> thread=1
sample(4096)
END
trace2cmt -s --thread=1 three.trace >out 2>err
diff -u - out <<'END' || complain "thread 1"
free(90<5>) thread=1
malloc(2) = 20<11> thread=1
mark("half") thread=2
free(20<11>) thread=2
realloc(0, 4) = 40<13> thread=1
free(40<13>) thread=2 time=7
reallocarray(0, 2, 7) = 60<15> thread=1
END
[ ! -s err ] || complain "thread 1: $(cat err)"
trace2cmt -s --thread=2,1,0 three.trace | cmp - three.trace || complain "all threads"
printf '#cmt text=1\nmalloc(8) = 1000<1>\n#stretch elapsed=9 ran=9 waited=0 held=0 busy=9\n' >ran.trace
[ "$(trace2cmt -s ran.trace | grep -c '^#stretch')" = 1 ] || complain "the times of the threads are left out"
! trace2cmt -s --thread=0 ran.trace | grep '^#stretch' || complain "the times of all threads are those of one"
trace2cmt -s --thread=1,9 -o none.trace three.trace 2>err && complain "a thread that there is not: exit 0"
[ "$(cat err)" = 'trace2cmt: three.trace: no event is of thread 9 (--thread)' ] && [ ! -e none.trace ] || complain "a thread that there is not: $(cat err)"
[ "$(trace2cmt -s --slice=0:2 --thread=2 three.trace | grep -vc '^#cmt')" = 0 ] || complain "a thread that the slice does not have"
for thread in 1 2 3; do
  trace2cmt -s --thread=$thread many.trace >out 2>err
  [ ! -s err ] && [ "$(grep -c "malloc.*thread=$thread" out)" = "$(grep -c "malloc.*thread=$thread" many.trace)" ] &&
    ! grep malloc out | grep -qv thread=$thread || complain "thread $thread of many.trace: $(cat err)"
done

# Several files have distinct tags, threads and addresses, rising times, and a mark before each file.
trace2cmt -o three.cmt three.trace
trace2cmt -s three.cmt three.trace >out 2>err
{ echo 'mark("three.cmt") time=0' && cat three.trace; } >expected
cat >>expected <<'END'
mark("three.trace") thread=3 time=7
malloc(1) = 1000000000010<25> thread=3
malloc(2) = 1000000000020<26> thread=4
malloc(3) = 1000000000030<27> thread=5
mark("half") thread=5
free(1000000000020<26>) thread=5
realloc(1000000000010<25>, 4) = 1000000000040<28> thread=4
free(1000000000030<27>) thread=4
realloc(1000000000040<28>, 5) = 1000000000050<29> thread=5 time=14
realloc(1000000000050<29>, 6) = 0 thread=4
reallocarray(1000000000050<29>, 2, 7) = 1000000000060<30> thread=4
sample(4096) thread=3
END
diff -u <(sed 's/ time=7$//; s/ time=0$//' expected) <(sed 's/ time=7$//; s/ time=0$//' out) || complain "two files"
[ "$(cat err)" = "trace2cmt: 25 events, 1 repair: 1 free of no block dropped" ] || complain "two files: $(cat err)"
trace2cmt -o joined.cmt many.trace every_kind.trace many.trace 2>err
grep -q '2 repairs' err || complain "three files: $(cat err)"
[ "$(trace2cmt -s joined.cmt | grep -c '^mark("[me][av].*trace")')" = 3 ] || complain "marks of three files"

# Joining to a joined trace gives addresses that no file has.
printf 'malloc(8) = 1000<1>\n' >one.trace
trace2cmt -o two.cmt one.trace one.trace
trace2cmt -o three.cmt two.cmt one.trace
trace2cmt --verify three.cmt >out || complain "a joined trace and one: $(cat out)"
[ "$(trace2cmt -s three.cmt | grep -c '^malloc(8) = \(1000<1>\|1000000001000<2>\|2000000001000<3>\)')" = 3 ] ||
  complain "addresses after a joined trace: $(trace2cmt -s three.cmt)"
printf 'malloc(8) = ffff000000001000<1>\n' >last.trace
printf 'malloc(8) = b400007512345670<1>\n' >tagged.trace  # as Android has them
trace2cmt -o tagged.cmt last.trace tagged.trace tagged.trace && trace2cmt --verify tagged.cmt >out || complain "addresses with tags: $(cat out)"
status=0; trace2cmt -o out.cmt one.trace last.trace 2>err || status=$?
[ "$status" = 1 ] && [ "$(cat err)" = "trace2cmt: last.trace:1: the files before it leave no address for its block" ] ||
  complain "too large an address: $status, $(cat err)"

sed 's/program=.*/program=app/' every_kind.trace >other.trace
[ -z "$(trace2cmt -s every_kind.trace other.trace 2>err | grep program)" ] || complain "metadata in which files differ"
trace2cmt -s every_kind.trace every_kind.trace 2>err | grep -q '^#cmt program=' || complain "metadata in which files agree"
status=0; trace2cmt -o out.cmt many.trace missing 2>err || status=$?
[ "$status" = 1 ] && [ ! -e out.cmt ] && [ "$(cat err)" = "trace2cmt: missing: No such file or directory" ] || complain "$(cat err)"
printf 'malloc(8) = 10<1> thread=4294967295\n' >last_thread.trace
for second in many.trace last_thread.trace; do
  status=0; trace2cmt -o out.cmt last_thread.trace $second 2>err || status=$?
  [ "$status" = 1 ] && [ "$(cat err)" = "trace2cmt: $second: the files before it leave no numbers for its threads" ] ||
    complain "too many threads: $status, $(cat err)"
done
printf 'malloc(8) = 10<1> thread=1\n' >first_thread.trace
status=0; trace2cmt -o out.cmt first_thread.trace last_thread.trace 2>err || status=$?
[ "$status" = 1 ] &&
  [ "$(cat err)" = "trace2cmt: last_thread.trace:1: the files before it leave no number for its thread" ] ||
  complain "too large a thread: $status, $(cat err)"
status=0; trace2cmt - - </dev/null 2>err || status=$?
[ "$status" = 2 ] && grep -q 'standard input can be read once' err || complain "- twice: $status, $(cat err)"
head -n 8 every_kind.trace >cut.trace
trace2cmt -s cut.trace every_kind.trace 2>err | tail -n 1 | grep -qx '#cmt end=truncated' || complain "a cut file"
grep -qx 'trace2cmt: warning: cut.trace: the trace breaks off; all that is whole was read' err || complain "$(cat err)"

# An anonymous trace has no names, addresses or time of day, but every call.
cat >secret.trace <<'END'
#cmt text=1
#cmt program=hush-program
#cmt command="hush-program --key hush"
#cmt pid=31337
#cmt start=2026-01-02T03:04:05Z
#cmt start_monotonic_ns=987654321
#cmt host=hush-host
#cmt page_size=4096
malloc(8) = 81d220b48<6655> time=1767323045000000000 usable=24
mark("hush phase") time=1767323045000000100
mark("hush other")
mark("hush phase")
thread_name("hush thread") thread=1 time=1767323045000000200
realloc(81d220b48<6655>, 16) = 81d3b83a0<6656> thread=1 time=1767323045000000300
free(81d3b83a0<6656>)
#cmt end=complete
END
trace2cmt -s --anonymise secret.trace >out
diff -u - out <<'END' || complain "an anonymous trace"
#cmt text=1
#cmt page_size=4096
malloc(8) = <6655> time=0 usable=24
mark("1") time=100
mark("2")
mark("1")
thread_name("3") thread=1 time=200
realloc(<6655>, 16) = <6656> thread=1 time=300
free(<6656>)
#cmt end=complete
END
trace2cmt -o many.cmt many.trace
trace2cmt --anonymise -o hidden.cmt many.cmt
sed 's/[0-9a-f]*</</; s/ time=.*//' many.trace | cmp - <(trace2cmt -s hidden.cmt | sed 's/ time=.*//') || complain "calls of an anonymous trace"
trace2cmt -s --slice=5:8 many.cmt | trace2cmt -s --anonymise | grep -q 'mark("slice 5:8")' || complain "the mark of a slice goes"

# Times are rounded down to a step, after --anonymise has made them begin with 0.
trace2cmt -s --anonymise --time-resolution=150ns secret.trace >out
printf '%s\n' 0 0 150 300 | diff -u - <(sed -n 's,.* time=\([0-9]*\).*,\1,p' out) || complain "rounded times"
trace2cmt -s --time-resolution=1ns many.cmt | cmp - <(trace2cmt -s many.cmt) || complain "a step of 1 ns changes something"
for wrong in 0 100 x -1us ''; do
  status=0
  trace2cmt --time-resolution=$wrong many.cmt >out 2>err || status=$?
  [ $status = 2 ] && grep -q "^trace2cmt:.*time-resolution" err || complain "--time-resolution=$wrong: $(cat err)"
done

# All of these traces replay, an anonymous trace with the same results as the whole one.
replay() {
  cmtreplay --alloc=libc --runs=1 --threads=1 --json "$1" 2>err | python3 -c '
import json, sys
report = json.load(sys.stdin)
for mark in report["allocators"][0]["marks"]: print(mark["event"], mark["live_bytes"], mark["live_blocks"])'
  ! grep -v 'does not say which pages' err || complain "replaying $1: $(cat err)"
}
replay many.cmt >whole
replay hidden.cmt | cmp - whole || complain "an anonymous trace replays otherwise"
[ "$(wc -l <whole)" -gt 10 ] || complain "few marks: $(cat whole)"
trace2cmt --slice=10000:15000 --thread=1,3 --anonymise -o part.cmt many.cmt
replay part.cmt >part
[ "$(wc -l <part)" -gt 10 ] || complain "a part of a slice: $(cat part)"
exit $failed
