# An allocator that crashes is a result: event and signal are reported, the other allocators still run, the status is 1.
faulty=$BUILD/tests/replay/libfaulty_at_size.so
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

# On the thread where it happens, among threads that wait for it; and a call that never returns.
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
  cmtreplay $how --timeout=5 --alloc=$faulty --alloc=libc --runs=1 --json hang.trace > hang.json 2> words || status=$?
  test $status = 1
  grep -qx "cmtreplay: $faulty: died at event 2 of 5: no call has returned for 5 s" words
  /usr/bin/python3 -c '
import json
faulty, libc = json.load(open("hang.json"))["allocators"]
assert faulty["death"]["hung"] and faulty["death"]["event"] == 2
assert libc["death"] is None'
done
