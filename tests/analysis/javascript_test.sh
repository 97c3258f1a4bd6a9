# Checks how tools show the stacks of a Node program: native frames of node that JavaScript calls only hand memory on.

source "$SOURCE/tests/behaviours.sh"
shopt -s lastpipe  # so that "... | same" sets `failed` here
same() { diff "$2" - >difference || complain "$1:
$(cat difference)"; }

# The frames: node's, the C library's, JavaScript's and V8's from a perf map, and those of an addon. Frame 3 both calls
# JavaScript and allocates. Frame 10 is code without a name, as of V8's copies of its builtins. Frames 11 and 12 make
# buffers.
cat >app.trace <<'END'
#cmt text=1
#cmt program=node
#module 1 begin=400000 end=900000 bias=0 path=/nowhere/node
#module 2 begin=7f0000000000 end=7f0000200000 bias=7f0000000000 path=/nowhere/libc.so.6
#module 3 begin=7f1000000000 end=7f1000200000 bias=7f1000000000 path=/srv/node_modules/grid/build/grid.node
#frame 1 module=2 address=7f0000001000
#name 1 function=__libc_start_call_main
#frame 2 module=1 address=401000
#name 2 function="node::Start(int, char**)"
#frame 3 module=1 address=402000
#name 3 function=Builtins_JSEntryTrampoline
#frame 4 module=1 address=403000
#name 4 function="v8::internal::Factory::NewThing(int)"
#frame 5 module=0 address=100001
#name 5 function="<anonymous> /srv/app.js:1:1"
#frame 6 module=0 address=100002
#name 6 function="render /srv/app.js:6:16"
#frame 7 module=0 address=100003
#name 7 function="readFileSync node:fs:441:22"
#frame 8 module=3 address=7f1000001000
#name 8 function=grid_new
#frame 9 module=2 address=7f0000002000
#name 9 function=fopen
#frame 10 module=0 address=100004
#frame 11 module=0 address=100005
#name 11 function="alloc node:buffer:386:30"
#frame 12 module=0 address=100006
#name 12 function="createUnsafeBuffer node:internal/buffer:1056:28"
#node 1 parent=0 frame=1
#node 2 parent=1 frame=2
#node 3 parent=2 frame=3
#node 4 parent=3 frame=5
#node 5 parent=4 frame=3
#node 6 parent=5 frame=6
#node 7 parent=6 frame=3
#node 8 parent=7 frame=7
#node 9 parent=8 frame=4
#node 10 parent=6 frame=4
#node 11 parent=6 frame=9
#node 12 parent=6 frame=8
#node 13 parent=12 frame=4
#node 14 parent=6 frame=10
#node 15 parent=14 frame=4
#node 16 parent=2 frame=4
#node 17 parent=6 frame=11
#node 18 parent=17 frame=12
#node 19 parent=18 frame=3
#node 20 parent=19 frame=4
malloc(4000) = a000<1> stack=9
malloc(1000) = c000<2> stack=10
malloc(200) = d000<3> stack=11
malloc(500) = e000<4> stack=13
malloc(30) = f000<5> stack=15
malloc(60) = fa00<6> stack=16
malloc(7) = fb00<7> stack=7
malloc(20000) = 1c000<8> stack=20
#cmt end=complete
END
trace2cmt app.trace -o app.cmt

# rows OPTION...: the figures and names of a table.
rows() { lifetimes --csv "$@" app.cmt | python3 -c '
import csv, sys
for row in csv.DictReader(sys.stdin):
    if row["peak_bytes"] != "0": print(row["peak_bytes"], row["name"])'; }

charged_to_javascript() {
  rows --by=function | same "--by=function" /dev/fd/3 3<<'END'
21237 render /srv/app.js:6:16
4000 readFileSync node:fs:441:22
500 grid_new
60 v8::internal::Factory::NewThing(int)
END
  rows --by=line | sed -n 1p | same "--by=line charges JavaScript for addons, too" /dev/fd/3 3<<<'21737 render /srv/app.js:6:16'
  lifetimes --folded=bytes app.cmt | grep ' \(30\|7\|4000\|500\)$' | same "--folded" /dev/fd/3 3<<'END'
<anonymous> /srv/app.js:1:1;render /srv/app.js:6:16;100004;v8::internal::Factory::NewThing(int) 30
<anonymous> /srv/app.js:1:1;render /srv/app.js:6:16;Builtins_JSEntryTrampoline 7
<anonymous> /srv/app.js:1:1;render /srv/app.js:6:16;grid_new;v8::internal::Factory::NewThing(int) 500
<anonymous> /srv/app.js:1:1;render /srv/app.js:6:16;readFileSync node:fs:441:22;v8::internal::Factory::NewThing(int) 4000
END
}

charged_to_native_functions() {
  for option in --native=all --raw; do
    rows --by=function $option --top=1 | same "$option" /dev/fd/3 3<<<'25590 v8::internal::Factory::NewThing(int)'
  done
  rows --by=library | same "--by=library" /dev/fd/3 3<<'END'
25597 node
200 libc.so.6
END
}

other_tools() {
  sed -E 's/^malloc\(([0-9]+)\) = ([a-f0-9]+)/malloc(\1000) = \2000/' app.trace >large.trace
  lifetimes --diff=app.cmt --by=function --csv large.trace >difference.csv
  grep -q '^readFileSync node:fs:441:22,changed,3996000,' difference.csv || complain "--diff: $(cat difference.csv)"
  overhead --by=function app.cmt | grep -q '^readFileSync node:fs' || complain "overhead: $(overhead --by=function app.cmt)"
  cmtreport large.trace >report
  grep -q 'in render (app.js:6)' report && ! grep -q NewThing report || complain "cmtreport: $(cat report)"
}

nameless_code_alone() {
  sed 's/^#name [567] .*//; s/^#name 1[12] .*//' app.trace >nameless.trace
  lifetimes --by=function --csv nameless.trace | grep -q '^v8::internal::Factory::NewThing(int),.*' ||
    complain "without JavaScript: $(lifetimes --by=function nameless.trace)"
}

behaviour "the innermost function of JavaScript is charged, or an addon's" charged_to_javascript
behaviour "with all frames and with --raw, the innermost native function is charged" charged_to_native_functions
behaviour "overhead, cmtreport and --diff charge JavaScript too" other_tools
behaviour "without functions of JavaScript, the stacks are shown as in other programs" nameless_code_alone
exit $failed
