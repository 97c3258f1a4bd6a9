# An allocator that crashes is a result. Its event and signal are reported, the other allocators still run, and the status
# is 1.
. "$SOURCE/tests/waiting.sh"
faulty=$BUILD/tests/cmtreplay/libfaulty_at_size.so
cat > t.trace << 'END'
malloc(10) = 1000<1>
thread_start() thread=1
calloc(2, 5) = 2000<2>
malloc(66666) = 3000<3>
free(1000<1>)
END
status=0
cmtreplay --alloc=$faulty --alloc=libc --runs=2 --json t.trace > crash.json 2> words || status=$?
test $status = 1
grep -qx "cmtreplay: $faulty: died at event 4 of 5: signal [0-9]* (.*)" words
/usr/bin/python3 - << 'END'
import json
with open("crash.json") as file:
    faulty, libc = json.load(file)["allocators"]
assert faulty["death"]["event"] == 4 and faulty["death"]["signal"] in (4, 5)
assert faulty["ns_per_call"] is None and "marks" not in faulty
assert libc["death"] is None and len(libc["wall_ns"]["samples"]) == 2 and libc["marks"]
END
status=0
cmtreplay --alloc=$faulty --alloc=libc --runs=2 t.trace > table 2> words || status=$?
test $status = 1
sed -n 3p table | grep -q '^libc '
sed -n 4p table | grep -q 'libfaulty_at_size.so (died) '
status=0
cmtreplay -v --alloc=$faulty --runs=1 t.trace > new.trace 2> words || status=$?
test $status = 1
test ! -s new.trace

# A crash while the replay touches a block is reported as such, and not as one in a call.
echo 'malloc(3000000) = 1000<1>' > touch.trace
status=0
cmtreplay --alloc=$faulty --runs=1 touch.trace > table 2> words || status=$?
test $status = 1
grep -qx "cmtreplay: $faulty: died at event 1 of 1: signal [0-9]* (.*), while its block was touched" words

echo 'malloc(99999) = 1000<1>' > kill.trace
cmtreplay --alloc=$faulty --runs=1 kill.trace > table 2> words || true
grep -qx "cmtreplay: $faulty: died at event 1 of 1: signal 9 (Killed), perhaps by the kernel, as memory was short" words

echo 'malloc(55555) = 1000<1>' > group.trace
status=0
cmtreplay --alloc=$faulty --runs=1 group.trace > table 2> words || status=$?
test $status = 1
grep -qx "cmtreplay: $faulty: died at event 1 of 1: signal 9 (Killed), perhaps by the kernel, as memory was short" words

# A forked child of an allocator carries out no event of the trace. It ends with the worker, even if it sleeps.
{ for ((tag = 1; tag < 30; ++tag)); do echo "malloc(44444) = ${tag}0000<$tag>"; done; echo 'malloc(33333) = 1000<30>'; } > fork.trace
cmtreplay --alloc=$faulty --runs=3 --json fork.trace > fork.json
/usr/bin/python3 - << 'END'
import json
with open("fork.json") as file:
    faulty, = json.load(file)["allocators"]
assert faulty["death"] is None and all(0 < ns < 60e9 for ns in faulty["wall_ns"]["samples"]), faulty
END
until_true '! test -e /proc/$(cat child)/root/.'  # it is gone, or a zombie, which has no root
{ cat fork.trace; echo 'malloc(99999) = 500000000<31>'; } > fork_and_end.trace
cmtreplay --alloc=$faulty --runs=1 fork_and_end.trace > table 2> words || true
grep -qx "cmtreplay: $faulty: died at event 31 of 31: signal 9 (Killed), perhaps by the kernel, as memory was short" words
until_true '! test -e /proc/$(cat child)/root/.'

# An allocator that refuses calls has less to do. The table says so, lists it later, and has no ratio to it.
{ echo 'malloc(88888) = 1000<1>'; for ((tag = 2; tag < 2000; ++tag)); do echo "calloc(1, 88888) = ${tag}0000<$tag>"; done; } > refuse.trace
cmtreplay --alloc=$faulty --alloc=libc --runs=2 refuse.trace > table 2> words
grep -qx "cmtreplay: $faulty: refused 1 call" words
sed -n 3p table | grep -q '^libc .* 1\.00 '
sed -n 4p table | grep -q "^$faulty (refused 1 call) "
grep -qx 'ratios are to libc' table
# An allocator that refuses every call has replayed nothing, which is no success.
refusing=$BUILD/tests/cmtreplay/libfaulty_at_every_call.so
printf 'malloc(10) = 1000<1>\nrealloc(1000<1>, 20) = 2000<2>\ncalloc(2, 5) = 3000<3>\nfree(2000<2>)\nfree(3000<3>)\n' > few.trace
status=0
cmtreplay --alloc=$refusing --alloc=libc --runs=1 few.trace > table 2> words || status=$?
test $status = 1
grep -qx "cmtreplay: $refusing: refused all 3 calls for memory: nothing was measured" words
status=0
cmtreplay --verify --alloc=$refusing --alloc=libc few.trace > lines 2> words || status=$?
test $status = 1
head -1 lines | grep -qx "$refusing: event 1: malloc(10) = NULL: was not refused when it was recorded"
grep -qx "$refusing: refused all 3 calls for memory: nothing was verified" lines
grep -q "^$refusing: to stop before event 1: gdb .* --until=1$" lines
grep -q '^libc: no faults in 5 events' lines
status=0
cmtreplay --verify --alloc=$refusing --results=refusing few.trace > table 2> words || status=$?
test $status = 1
grep -q 'few: .*libfaulty_at_every_call.so: broke [0-9]* promises (--verify): refused all 3 calls for memory: nothing was verified$' table
cmtreplay --csv --alloc=$faulty --alloc=libc --runs=1 refuse.trace 2> words > refuse.csv
/usr/bin/python3 -c '
import csv
faulty, libc, null = csv.DictReader(open("refuse.csv"))
assert faulty["refused_calls"] == "1" and libc["refused_calls"] == "0" and faulty["death"] == ""
assert faulty["fragmentation"] == "" and float(libc["fragmentation"]) > 0.9'
# Without written pages resident memory says nothing about fragmentation.
cmtreplay --touch=none --runs=1 --json refuse.trace > untouched.json 2> words
grep -q '"fragmentation": null' untouched.json
# No ratio is to the null allocator either.
cmtreplay --alloc=null --alloc=libc --runs=1 t.trace > table
grep '^libc ' table | grep -q ' 1\.00 '
cmtreplay --alloc=null --runs=1 t.trace > table
sed -n 3p table | grep -q '^null .* - '

# A trace that needs more memory than is available is not begun.
echo 'malloc(4000000000000000) = 1000<1>' > large.trace
for how in --runs=1 --verify --touch=all; do
  status=0
  cmtreplay $how large.trace > table 2> words || status=$?
  test $status = 1 -a ! -s table
  grep -qx 'cmtreplay: large.trace: needs 3\.55 PiB of memory, and .* are available: not replayed; --touch=first needs less, --force tries it nevertheless' words
done
for how in --force --touch=first --alloc=null; do
  status=0
  cmtreplay $how --runs=1 large.trace > table 2> words || status=$?
  test $status = 1
  grep -qx 'cmtreplay: [a-z]*: refused all 1 call for memory: nothing was measured' words
done

# A crash is reported with its own thread, while others wait for that thread. So is a call that never returns.
cat > threads.trace << 'END'
malloc(10) = 1000<1> thread=0
malloc(66666) = 2000<2> thread=1
free(2000<2>) thread=0
malloc(20) = 3000<3> thread=2
free(3000<3>) thread=0
END
for how in --prepared --stream --order=strict; do
  status=0
  cmtreplay $how --alloc=$faulty --alloc=libc --runs=1 threads.trace > table 2> words || status=$?
  test $status = 1
  grep -qx "cmtreplay: $faulty: died at event 2 of 5: signal [0-9]* (.*)" words
  sed 's/66666/77777/' threads.trace > hang.trace
  status=0
  cmtreplay $how --timeout=5s --alloc=$faulty --alloc=libc --runs=1 --json hang.trace > hang.json 2> words || status=$?
  test $status = 1
  grep -qx "cmtreplay: $faulty: died at event 2 of 5: no call has returned for 5 s" words
  /usr/bin/python3 -c '
import json
faulty, libc = json.load(open("hang.json"))["allocators"]
assert faulty["death"]["hung"] and faulty["death"]["event"] == 2
assert libc["death"] is None'
done

# An allocator that refuses the memory of a thread, or leaves no room for the replay, is named. The others are measured.
lowers=$BUILD/tests/cmtreplay/libfaulty_lowers_limit.so
for how in --runs=1 --verify; do
  status=0
  cmtreplay $how --alloc=$refusing --alloc=libc threads.trace > table 2> words || status=$?
  test $status = 1
  cat table words | sed 's/^cmtreplay: //' > all
  grep -qx "$refusing: died at event [12] of 5: a thread cannot be started: the allocator refused the memory that pthread_create asks for" all
  grep -q '^libc.* ' table
done
status=0
cmtreplay --verify --alloc=$lowers --alloc=libc threads.trace > table 2> words || status=$?
test $status = 1
grep -qx "$lowers: died before the first event: it lowers the limit of its process's memory, and the replay's has no room there" table
grep -q '^libc: no faults' table

# The table of several recordings marks allocators as that of one does.
{ cat refuse.trace; echo 'malloc(88888) = 90000000<3000>'; } > refuse2.trace
cmtreplay --same-program --runs=1 --alloc=libc --alloc=$faulty refuse.trace refuse2.trace > table 2> words
grep -q "^$faulty (refused 1 to 2 calls)  *[0-9]" table
status=0
cmtreplay --same-program --runs=1 --alloc=libc --alloc=$faulty refuse.trace t.trace > table 2> words || status=$?
test $status = 1
grep -q "^$faulty (died)  *-" table

# The text of a search has what was not measured. The status is 1 if an allocator of the command line crashed.
bump=$BUILD/cmtreplay/libexample_bump.so
for ((tag = 1; tag <= 100; ++tag)); do echo "malloc(1000) = ${tag}0000<$tag>"; done > some.trace
{ cat some.trace; echo 'malloc(88888) = 9000000<200>'; } > refused.trace
{ cat some.trace; echo 'malloc(66666) = 9000000<200>'; } > dies.trace
cmtreplay --tune=memory --alloc=$bump --alloc=$faulty refused.trace > table 2> words
grep -qx "cmtreplay: refused: $faulty: refused 1 call" words
grep -qx "  $faulty: refused: refused 1 call" table
status=0
cmtreplay --tune=memory --alloc=$bump --alloc=$faulty dies.trace > table 2> words || status=$?
test $status = 1
grep -q "^cmtreplay: dies: $faulty: died at event 101 of 101: signal" words
grep -q "^  $faulty: dies: died at event 101 of 101: signal" table
