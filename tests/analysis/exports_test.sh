# Checks lifetimes --pprof and --speedscope: the tests' own readers read the files, and the totals are those of --by.

shopt -s lastpipe  # so that "... | same" sets `failed` here
failed=0
complain() { echo "$*" >&2; failed=1; }
same() { diff "$2" - >difference || complain "$1:
$(cat difference)"; }
speedscope() { python3 "$SOURCE/tests/analysis/check_speedscope.py" "$@"; }
pprof() { python3 "$SOURCE/tests/analysis/read_pprof.py" "$@"; }

# main calls parse, which calls itself, and list::push, which is inlined in fill. A plugin has a function without a name;
# one stack is cut; one name is one that no terminal should obey, and no UTF-8.
cat >app.trace <<'END'
#cmt text=1
#cmt program=app
#cmt command="app --fast"
#cmt start=2026-01-02T03:04:05Z
#module 1 begin=20000 end=30000 bias=20000 build_id=01ef path=/opt/plugin.so
#module 2 begin=1000 end=9000 bias=1000 path=/opt/app
#frame 1 module=2 address=1010
#name 1 function=main file=app.cpp line=30
#frame 2 module=2 address=1020
#name 2 function=parse(int) file=app.cpp line=10
#frame 3 module=2 address=1030
#name 3 function="std::__new_allocator<int>::allocate(unsigned long, void const*)" file=new_allocator.h line=137
#name 3 function=list::push(int) file=list.h line=5
#name 3 function=fill file=app.cpp line=20
#frame 4 module=1 address=20040
#name 4 function=
#frame 5 module=2 address=1050
#name 5 function="b\xff\x1b[2J;" file="\x07x.cpp" line=3
#node 1 parent=0 frame=1
#node 2 parent=1 frame=2
#node 3 parent=2 frame=2
#node 4 parent=3 frame=2
#node 5 parent=1 frame=3
#node 6 parent=1 frame=4
#node 7 parent=0 frame=0
#node 8 parent=7 frame=5
malloc(1000) = a000<1> stack=4 time=1000000
malloc(100) = b000<2> stack=2 time=2000000
operator new(40) = c000<3> stack=5 time=2000000
free(c000<3>) time=3000000
malloc(16) = d000<4> stack=6 thread=1 time=3000000
realloc(b000<2>, 300) = e000<5> stack=5 time=4000000
malloc(7) = f000<6> time=4000000
free(a000<1>) time=5000000
malloc(50) = a000<7> stack=4 time=6000000
malloc(1) = aa00<8> stack=8 time=7000000
#cmt end=complete
END
lifetimes --pprof=app.pb.gz app.trace 2>messages || complain "--pprof: $(cat messages)"
pprof app.pb.gz | sed 's/lifetimes [0-9.]*,/lifetimes,/' | same "the profile" /dev/fd/3 3<<'END'
types: alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes peak_objects/count peak_space/bytes temporary_objects/count
default: peak_space
period: space/bytes 1
time: 1767323045000000000 7000000
comment: cmt lifetimes, of app.trace
comment: command: app --fast
comment: 10 events
mapping 2: 1000-9000 /opt/app id= ++++
mapping 1: 20000-30000 /opt/plugin.so id=01ef ----
location 2: 2 100f main app.cpp:30
location 3: 2 101f parse(int) app.cpp:10
location 10: 2 102f list::push(int) list.h:5; fill app.cpp:20
location 5: 1 2003f
location 6: 2 104f b� [2J;  x.cpp:3
location 1: 0 0 [cut]
location 7: 0 0 [unknown]
sample: 1 7 1 7 1 7 0 at 7
sample: 1 100 0 0 0 0 0 at 3 2
sample: 2 1050 1 50 1 1000 0 at 3 3 3 2
sample: 2 340 1 300 1 300 1 at 10 2
sample: 1 16 1 16 1 16 0 at 5 2
sample: 1 1 1 1 0 0 0 at 6 1
END

# The totals are those of --by, of the whole trace, a slice and chosen stacks; hidden functions are in no line.
for options in "" --slice=3:8 --slice=3ms: --focus=parse --ignore='fill|plugin' "--focus=app --slice=:4"; do
  lifetimes --by=function --json $options app.trace 2>messages |
    jq -r '.total | "\(.allocated_blocks) \(.allocated_bytes) \(.leaked_blocks) \(.leaked_bytes) \(.peak_blocks) \(.peak_bytes) \(.temporary_blocks)"' >want
  lifetimes --pprof=- $options app.trace 2>messages >out.pb.gz || complain "$options: $(cat messages)"
  pprof --totals out.pb.gz | cmp -s want || complain "$options: $(pprof --totals out.pb.gz), not $(cat want)"
done
lifetimes --pprof=hidden.pb.gz --hide='^(fill|parse.*|list.*)$' --slice=2ms:6ms app.trace 2>messages
pprof hidden.pb.gz | grep -e location -e time: -e slice -e sample | same "hidden functions" /dev/fd/3 3<<'END'
time: 1767323045002000000 3000000
comment: slice: 2ms:6ms
location 2: 2 100f main app.cpp:30
location 5: 1 2003f
location 7: 0 0 [unknown]
sample: 1 7 1 7 1 7 0 at 7
sample: 1 100 0 0 0 0 0 at 2
sample: 0 0 0 0 1 1000 0 at 2
sample: 2 340 1 300 1 300 1 at 2
sample: 1 16 1 16 1 16 0 at 5 2
END

# A function that gets memory for a node of a container also calls the constructor of its element. As with --by, the
# constructor is charged for what it allocates itself. A function that is not there at the inner end of a stack stays in it.
cat >tree.trace <<'END'
#cmt text=1
#cmt start=9999-12-31T23:59:59Z
#module 1 begin=1000 end=9000 bias=1000 path=/opt/app
#frame 1 module=1 address=1010
#name 1 function=insert file=app.cpp line=1
#frame 2 module=1 address=1020
#name 2 function=std::_Rb_tree<int>::_M_create_node<int>(int&&) file=stl_tree.h line=2
#frame 3 module=1 address=1030
#name 3 function=Order::Order() file=app.cpp line=3
#frame 4 module=1 address=1040
#name 4 function=malloc
#node 1 parent=0 frame=1
#node 2 parent=1 frame=2
#node 3 parent=2 frame=3
#node 4 parent=3 frame=4
#node 5 parent=2 frame=4
#node 6 parent=0 frame=4
malloc(10) = a000<1> stack=4 time=5
malloc(100) = b000<2> stack=5 time=6
malloc(1000) = c000<3> stack=6 time=7
#cmt end=complete
END
lifetimes --pprof=tree.pb.gz tree.trace 2>messages || complain "tree: $(cat messages)"
pprof tree.pb.gz | grep -e ^time: -e ^location -e ^sample | same "a container's node" /dev/fd/3 3<<'END'
time: 0 7
location 2: 1 100f insert app.cpp:1
location 3: 1 101f std::_Rb_tree<int>::_M_create_node<int>(int&&) stl_tree.h:2
location 4: 1 102f Order::Order() app.cpp:3
location 10: 1 103f malloc
sample: 1 10 1 10 1 10 0 at 4 3 2
sample: 1 100 1 100 1 100 0 at 2
sample: 1 1000 1 1000 1 1000 0 at 10
END
lifetimes --pprof=- --skip='^Order' --skip=insert tree.trace 2>messages >skipped.pb.gz && pprof skipped.pb.gz | grep -c 'at 7$' | same "--pprof --skip" <(echo 2)
lifetimes --pprof=- --raw tree.trace 2>messages >raw.pb.gz && pprof raw.pb.gz | grep -c 'at 5 ' | same "--pprof --raw" <(echo 2)
lifetimes --by=function --json tree.trace 2>messages | jq -r '.contributors[] | "\(.self.peak_bytes) \(.name)"' | sort -n |
  same "a container's node, by function" /dev/fd/3 3<<'END'
10 Order::Order()
100 insert
1000 malloc
END

lifetimes --speedscope=app.json app.trace 2>messages || complain "--speedscope: $(cat messages)"
speedscope app.json | same "for speedscope" /dev/fd/3 3<<'END'
name: app.trace frames: 9
frame: main in app.cpp
frame: parse(int) in app.cpp
frame: std::__new_allocator<int>::allocate(unsigned long, void const*) in new_allocator.h
frame: list::push(int) in list.h
frame: fill in app.cpp
frame: plugin.so+0x40 in plugin.so
frame: [cut] in -
frame: b� [2J; in  x.cpp
frame: [unknown] in -
live at the peak, bytes: 1323
  [unknown] 7
  main;fill;list::push(int);std::__new_allocator<int>::allocate(unsigned long, void const*) 300
  main;parse(int);parse(int);parse(int) 1000
  main;plugin.so+0x40 16
allocated, bytes: 1514
  [cut];b� [2J; 1
  [unknown] 7
  main;fill;list::push(int);std::__new_allocator<int>::allocate(unsigned long, void const*) 340
  main;parse(int) 100
  main;parse(int);parse(int);parse(int) 1050
  main;plugin.so+0x40 16
live at the end, bytes: 374
  [cut];b� [2J; 1
  [unknown] 7
  main;fill;list::push(int);std::__new_allocator<int>::allocate(unsigned long, void const*) 300
  main;parse(int);parse(int);parse(int) 50
  main;plugin.so+0x40 16
blocks allocated, none: 8
  [cut];b� [2J; 1
  [unknown] 1
  main;fill;list::push(int);std::__new_allocator<int>::allocate(unsigned long, void const*) 2
  main;parse(int) 1
  main;parse(int);parse(int);parse(int) 2
  main;plugin.so+0x40 1
temporary blocks, none: 1
  main;fill;list::push(int);std::__new_allocator<int>::allocate(unsigned long, void const*) 1
END
for options in "" --slice=3:8 --focus=parse --ignore='fill|plugin'; do
  lifetimes --by=function --json $options app.trace 2>messages |
    jq -r '.total | .peak_bytes, .allocated_bytes, .leaked_bytes, .allocated_blocks, .temporary_blocks' >want
  lifetimes --speedscope=- $options app.trace 2>messages >out.json || complain "$options: $(cat messages)"
  speedscope out.json | sed -n 's/.*, \(bytes\|none\): //p' | cmp -s want || complain "$options: $(speedscope out.json)"
done
lifetimes --speedscope=hidden.json.gz --hide='^(fill|parse.*|list.*)$' app.trace 2>messages
speedscope hidden.json.gz | grep -e frame: -e ^allocated -A3 | same "hidden functions" /dev/fd/3 3<<'END'
frame: main in app.cpp
frame: std::__new_allocator<int>::allocate(unsigned long, void const*) in new_allocator.h
frame: plugin.so+0x40 in plugin.so
frame: [cut] in -
frame: b� [2J; in  x.cpp
frame: [unknown] in -
live at the peak, bytes: 1323
  [unknown] 7
  main 1000
--
allocated, bytes: 1514
  [cut];b� [2J; 1
  [unknown] 7
  main 1150
END

# A file that is there stays as it is until the new one is whole, and where that fails; the same trace gives the same bytes.
echo old >kept.pb.gz
! lifetimes --pprof=kept.pb.gz missing.trace 2>messages || complain "a trace that is missing"
! lifetimes --pprof=kept.pb.gz --slice=@x: app.trace 2>messages || complain "a slice that is missing"
[ "$(cat kept.pb.gz)" = old ] || complain "the old file is gone"
lifetimes --pprof=kept.pb.gz app.trace 2>messages
cmp kept.pb.gz app.pb.gz || complain "other bytes"
[ "$(echo *.part)" = "*.part" ] || complain "left behind: $(echo *.part)"
head -n -1 app.trace >broken.trace
printf 'malloc(' >>broken.trace
lifetimes --pprof=broken.pb.gz broken.trace 2>messages || complain "a trace that breaks off: $(cat messages)"
pprof broken.pb.gz >broken
grep -qx "comment: the trace breaks off" broken || complain "broken: $(cat broken)"

# Forms that name each function of each stack do not grow with the square of the depth: deep stacks are cut.
{
  echo '#cmt text=1'
  for ((i = 1; i <= 3000; ++i)); do
    printf '#frame %d module=0 address=%x\n#node %d parent=%d frame=%d\nmalloc(1) = %x<%d> stack=%d\n' \
      $i $((i * 16)) $i $((i - 1)) $i $((i * 16)) $i $i
  done
  echo '#cmt end=complete'
} >deep.trace
lifetimes --folded deep.trace >deep 2>messages || complain "deep stacks: $(cat messages)"
awk '{ sum += $NF; parts = split($0, part, ";"); if (parts > most) most = parts } END { print sum, most, NR }' deep | same "deep stacks" /dev/fd/3 3<<<"3000 1024 1024"
[ "$(tail -n 1 deep | tr ';' '\n' | tail -n 1)" = "[deeper] 1977" ] || complain "the deepest line: $(tail -n 1 deep | tail -c 40)"
lifetimes --pprof=deep.pb.gz deep.trace 2>messages || complain "deep pprof: $(cat messages)"
[ "$(gzip -dc deep.pb.gz | wc -c)" -lt 8000000 ] || complain "deep pprof: $(gzip -dc deep.pb.gz | wc -c) bytes"

refuses() { local want=$1 got; shift; got=$(lifetimes "$@" app.trace 2>&1 >/dev/null) && complain "$*: not refused"; [ "$(head -n 1 <<<"$got")" = "lifetimes: $want" ] || complain "$*: $got"; }
refuses "--by does not go with --pprof" --by=line --pprof=x
refuses "--pprof does not go with --folded" --folded --pprof=x
refuses "--summary does not go with --pprof" --summary --pprof=x
refuses "--pprof: expected a file" --pprof ""
refuses "--speedscope does not go with --pprof" --pprof=x --speedscope=y
refuses "--speedscope: expected a file" --speedscope ""
refuses "no/x: No such file or directory" --pprof=no/x
exit $failed
