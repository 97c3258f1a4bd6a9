# lifetimes --by and --folded on traces whose stacks have their names with them, and on damaged ones.

failed=0
complain() { echo "$*" >&2; failed=1; }
same() { diff "$2" - >difference || complain "$1:
$(cat difference)"; }

# main calls parse, which calls itself, and list::push, which is inlined in fill; a plugin has a function without a name.
cat >app.trace <<'END'
#cmt text=1
#module 1 begin=1000 end=9000 bias=1000 path=/opt/app
#module 2 begin=20000 end=30000 bias=20000 build_id=0123 path=/opt/plugin.so
#frame 1 module=1 address=1010
#name 1 function=main file=app.cpp line=30
#frame 2 module=1 address=1020
#name 2 function=parse(int) file=app.cpp line=10
#frame 3 module=1 address=1030
#name 3 function="std::__new_allocator<int>::allocate(unsigned long, void const*)" file=new_allocator.h line=137
#name 3 function=list::push(int) file=list.h line=5
#name 3 function=fill file=app.cpp line=20
#frame 4 module=2 address=20040
#name 4 function=
#node 1 parent=0 frame=1
#node 2 parent=1 frame=2
#node 3 parent=2 frame=2
#node 4 parent=3 frame=2
#node 5 parent=1 frame=3
#node 6 parent=1 frame=4
malloc(1000) = a000<1> stack=4
malloc(100) = b000<2> stack=2
operator new(40) = c000<3> stack=5
free(c000<3>)
malloc(16) = d000<4> stack=6 thread=1
realloc(b000<2>, 300) = e000<5> stack=5
malloc(7) = f000<6>
free(a000<1>)
malloc(50) = a000<7> stack=4
#cmt end=complete
END
lifetimes --by=function app.trace 2>messages | same "by function" /dev/fd/3 3<<'END'
app.trace: 9 events; 7 blocks, 1.48 KiB, of 4 stacks
  peak live: 4 blocks, 1.29 KiB, at event 7
  stack not known: 1 block, 7 B

 at peak  blocks  allocated  blocks  temporary  at end  blocks  with callees  function
  1000 B       1   1.12 KiB       3          0    50 B       1        1000 B  parse(int)
   300 B       1      340 B       2          1   300 B       1         300 B  list::push(int)
    16 B       1       16 B       1          0    16 B       1          16 B  plugin.so+0x40
     7 B       1        7 B       1          0     7 B       1           7 B  [unknown]
     0 B       0        0 B       0          0     0 B       0         300 B  fill
     0 B       0        0 B       0          0     0 B       0      1.29 KiB  main
1.29 KiB       4   1.48 KiB       7          1   373 B       4      1.29 KiB  all

sorted by live at the peak

the largest stack of parse(int):
  parse(int) at app.cpp:10 in app
  parse(int) at app.cpp:10 in app
  parse(int) at app.cpp:10 in app
  main at app.cpp:30 in app
END
[ "$(cat messages)" = "lifetimes: /opt/plugin.so: No such file or directory; its functions are not named" ] || complain "$(cat messages)"

# rows OPTION...: name, bytes at the peak and with callees, of each contributor.
rows() { lifetimes --json "$@" app.trace 2>messages | jq -r '.contributors[] | "\(.name) \(.self.peak_bytes)/\(.inclusive.peak_bytes)"'; }
rows --by=caller --top=3 | same "by caller" /dev/fd/3 3<<'END'
parse(int) <- parse(int) 1000/1000
list::push(int) <- fill 300/300
plugin.so+0x40 <- main 16/16
END
rows --by=line --inclusive | same "by line" /dev/fd/3 3<<'END'
app.cpp:30 0/1316
app.cpp:10 1000/1000
app.cpp:20 0/300
list.h:5 300/300
plugin.so+0x40 16/16
[unknown] 7/7
END
rows --by=library | same "by library" /dev/fd/3 3<<'END'
app 1300/1316
plugin.so 16/16
[unknown] 7/7
END
rows --by=function --skip='^list::|parse' | same "with --skip" /dev/fd/3 3<<'END'
main 1000/1316
fill 300/300
plugin.so+0x40 16/16
[unknown] 7/7
END
for sort in bytes:parse blocks:parse live:list temporary:list peak:parse; do
  rows --by=function --sort=${sort%:*} --top=1 | grep -q "^${sort#*:}" || complain "--sort=$sort"
done
lifetimes --by=library --csv app.trace 2>messages | cut -d, -f1-5,16 | same "CSV" /dev/fd/3 3<<'END'
name,allocated_blocks,allocated_bytes,peak_blocks,peak_bytes,stack
app,5,1490,2,1300,main;parse(int);parse(int);parse(int)
plugin.so,1,16,1,16,main;plugin.so+0x40
[unknown],1,7,1,7,
END
lifetimes --folded=blocks app.trace 2>messages | same "folded" /dev/fd/3 3<<'END'
[unknown] 1
main;fill;list::push(int);std::__new_allocator<int>::allocate(unsigned long, void const*) 2
main;parse(int) 1
main;parse(int);parse(int);parse(int) 2
main;plugin.so+0x40 1
END
lifetimes --folded app.trace 2>messages | cmp -s - <(lifetimes --folded=peak app.trace 2>messages) || complain "--folded is not --folded=peak"
trace2cmt app.trace | lifetimes --folded=live 2>messages | awk '{ sum += $NF } END { exit sum != 373 }' || complain "from a pipe"

# The totals are those of the summary.
lifetimes --json app.trace | jq -c '[.inputs[0].peak_live_bytes, .inputs[0].peak_event, ([.sizes[].temporary_blocks] | add)]' >summary
lifetimes --by=function --json app.trace 2>messages | jq -c '[.total.peak_bytes, .peak_event, .total.temporary_blocks]' | cmp -s - summary ||
  complain "other totals than --summary: $(cat summary)"

# Names that no terminal should obey, and that are no UTF-8; a stack that is cut; a trace that breaks off.
printf '#module 1 begin=0 end=1000000 bias=0 path="/x\\x1b[31m;y"\n#frame 1 module=1 address=10\n#name 1 function="a\\n;b\\xff\\x1b[2J" file="\\x07" line=3\n#node 1 parent=0 frame=0\n#node 2 parent=1 frame=1\nmalloc(8) = 10<1> stack=2\nmalloc(' >odd.trace
for option in --by=function --by=caller --by=line --by=library --folded; do
  lifetimes $option odd.trace >out 2>messages || complain "$option of a damaged trace: $(cat messages)"
  grep -q '[[:cntrl:]]' out && complain "$option: control characters"
done
lifetimes --by=function --json odd.trace 2>messages | jq -e '.truncated or .defects > 0' >out || complain "damaged, and not said: $(cat out messages)"
lifetimes --folded odd.trace 2>messages | wc -l | grep -qx 1 || complain "folded: not one line"

refuses() { local want=$1 got; shift; got=$(lifetimes "$@" app.trace 2>&1 >/dev/null) && complain "$*: not refused"; [ "$(head -n 1 <<<"$got")" = "lifetimes: $want" ] || complain "$*: $got"; }
refuses "--by: expected function, caller, line or library, not 'x'" --by=x
refuses "--sort: expected bytes, blocks, peak, live or temporary, not 'x'" --by=line --sort=x
refuses "--folded: expected bytes, blocks, peak, live or temporary, not 'x'" --folded=x
refuses "--skip: Unmatched ( or \\(" --by=line --skip='('
refuses "--top needs --by" --top=3
refuses "--debug-dir needs --by or --folded" --debug-dir=x
refuses "--top does not go with --folded" --folded --top=3
refuses "--summary does not go with --by" --by=line --summary
refuses "--json does not go with --folded" --folded --json

# Stacks that begin late are found: the header knows only of the first events.
{ echo "#cmt text=1"
  for ((tag = 1; tag <= 2000; ++tag)); do echo "malloc(8) = $((tag + 100000))0<$tag>"; done
  echo "#frame 1 module=0 address=1010"
  echo "#name 1 function=late"
  echo "#node 1 parent=0 frame=1"
  echo "malloc(8) = 90<2001> stack=1"
  echo "#cmt end=complete"
} >late.trace
trace2cmt -o late.cmt late.trace || complain "late.cmt"
for file in late.trace late.cmt; do
  lifetimes --folded=blocks $file | grep -qx "late 1" || complain "$file: the late stack is missing"
  trace2cmt --symbolise -o late.named.cmt $file || complain "$file: --symbolise"
done
exit $failed
