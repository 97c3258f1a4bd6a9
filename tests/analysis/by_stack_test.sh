# Checks lifetimes --by and --folded on traces that contain the names of their functions, and on damaged traces.

source "$SOURCE/tests/behaviours.sh"
shopt -s lastpipe  # so that "... | same" sets `failed` of the behaviour
# same FILE: compares the input with what is expected.
same() { diff "$1" - >difference || complain "$(cat difference)"; }

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
sed '/^#module\|^#frame\|^#name\|^#node/d; s/ stack=.*//' app.trace >plain.trace

# rows OPTION...: name, bytes at the peak and with callees, of each contributor.
rows() { lifetimes --json "$@" app.trace 2>messages | jq -r '.contributors[] | "\(.name) \(.self.peak_bytes)/\(.inclusive.peak_bytes)"'; }

by_function() {
  lifetimes --by=function app.trace 2>messages | same /dev/fd/3 3<<'END'
app.trace: 9 events; 7 blocks, 1.48 KiB, of 4 stacks
  peak live: 4 blocks, 1.29 KiB, at event 7
  stack not known: 1 block, 7 B

function           at peak  blocks at peak  allocated  allocations  temporary  at end  blocks at end  with callees
parse               1000 B               1   1.12 KiB            3          0    50 B              1        1000 B
list::push           300 B               1      340 B            2          1   300 B              1         300 B
plugin.so+0x40        16 B               1       16 B            1          0    16 B              1          16 B
[unknown]              7 B               1        7 B            1          0     7 B              1           7 B
all, with 2 more  1.29 KiB               4   1.48 KiB            7          1   373 B              4      1.29 KiB

sorted by live at the peak

the largest stack of parse(int):
  parse(int) at app.cpp:10 in app
  parse(int) at app.cpp:10 in app
  parse(int) at app.cpp:10 in app
  main at app.cpp:30 in app
END
  [ "$(cat messages)" = "lifetimes: /opt/plugin.so: No such file or directory; its functions are not named" ] || complain "$(cat messages)"
}
behaviour "--by=function charges each allocation to its innermost function that does not only allocate" by_function

# The width is the terminal's: columns are left out in a stated order, and a long name is shortened in its middle. The name is first.
by_width() {
  width() { COLUMNS=$1 lifetimes --by=function --top=1 "${@:2}" app.trace 2>messages | sed -n 5,6p | sed 's/ *$//'; }
  width 90 | same /dev/fd/3 3<<'END'
function           at peak  allocated  allocations  temporary  at end  with callees
parse               1000 B   1.12 KiB            3          0    50 B        1000 B
END
  sed 's/parse(int)/a_parser_of_very_long_lines::parse_all_of_them(int)/' app.trace >long.trace
  COLUMNS=80 lifetimes --by=function --top=1 long.trace 2>messages | sed -n 5,6p | same /dev/fd/3 3<<'END'
function                   at peak  allocated  allocations  at end  with callees
a_parse...se_all_of_them    1000 B   1.12 KiB            3    50 B        1000 B
END
  ! lifetimes --by=function app.trace 2>messages | grep -q $'\e' || complain 'escape sequences in a pipe'
  lifetimes --by=function --color=always app.trace 2>messages | grep -q $'^\e\\[1mfunction .*\e\\[0m$' || complain 'no bold heading'
}
behaviour "a table has the width of the terminal, and bold headings where that is wanted" by_width

by_caller() {
  lifetimes --by=caller --top=2 app.trace 2>messages | sed -n '5,/all/p' | sed 's/ *$//' | same /dev/fd/3 3<<'END'
caller             at peak  blocks at peak  allocated  allocations  temporary  at end  blocks at end  with callees
parse               1000 B               1   1.12 KiB            3          0    50 B              1        1000 B
  <- parse          1000 B               1   1.03 KiB            2          0    50 B              1
  <- parse          1000 B               1   1.03 KiB            2          0    50 B              1
  <- main           1000 B               1   1.03 KiB            2          0    50 B              1
list::push           300 B               1      340 B            2          1   300 B              1         300 B
  <- fill            300 B               1      340 B            2          1   300 B              1
  <- main            300 B               1      340 B            2          1   300 B              1
all, with 4 more  1.29 KiB               4   1.48 KiB            7          1   373 B              4      1.29 KiB
END
}
behaviour "--by=caller lists the callers of each function below it" by_caller

callers_as_csv() {
  lifetimes --by=caller --min=0 --sort=bytes --csv app.trace 2>messages | cut -d, -f1-3 | grep parse | same /dev/fd/3 3<<'END'
parse(int),3,1150
parse(int) <- parse(int),2,1050
parse(int) <- parse(int) <- parse(int),2,1050
parse(int) <- parse(int) <- parse(int) <- main,2,1050
parse(int) <- main,1,100
END
}
behaviour "--by=caller --csv names each caller with the path to it" callers_as_csv

by_thread() {
  rows --by=thread | same /dev/fd/3 3<<'END'
thread 0 1307/1307
thread 1 16/16
END
}
behaviour "--by=thread puts allocations together by thread" by_thread

by_size() {
  rows --by=size --sort=bytes --top=2 | same /dev/fd/3 3<<'END'
896 - 1,023 bytes 1000/1000
256 - 319 bytes 300/300
END
}
behaviour "--by=size puts allocations together by class of sizes" by_size

of_slice() {
  rows --by=function --slice=4: --sort=growth | same /dev/fd/3 3<<'END'
list::push(int) 300/300
plugin.so+0x40 16/16
[unknown] 7/7
fill 0/300
main 0/1316
parse(int) 1000/1000
END
}
behaviour "--slice with --sort=growth sorts by the bytes that the slice adds" of_slice

focused() {
  rows --by=function --focus='app.cpp:20$' | same /dev/fd/3 3<<'END'
list::push(int) 300/300
fill 0/300
main 0/300
END
}
behaviour "--focus keeps the stacks with a function or line that matches" focused

mistyped() {
  for regex in prase parse; do
    rows --by=function --focus=$regex >/dev/null 2>messages || complain "$regex: $(cat messages)"
    [ "$(grep -c 'lifetimes: no stack has a function, file, line or library that is asked for' messages)" = "$([ $regex = prase ] && echo 1 || echo 0)" ] ||
      complain "$regex: $(cat messages)"
  done
}
behaviour "a --focus that matches no stack is reported" mistyped

ignored_and_hidden() {
  rows --by=function --ignore=parse --hide='^(fill|list)' | same /dev/fd/3 3<<'END'
main 300/316
plugin.so+0x40 16/16
[unknown] 7/7
END
}
behaviour "--ignore leaves out stacks, and --hide takes functions out of them" ignored_and_hidden

without_stacks() {
  lifetimes --by=thread plain.trace >out 2>messages || complain "--by=thread without stacks: $(cat messages)"
  lifetimes --by=phase --json plain.trace | jq -r '.contributors[].name' | grep -qx '\[before the first mark\]' || complain "--by=phase"
  ! lifetimes --by=line plain.trace >out 2>messages || complain "--by=line without stacks"
}
behaviour "a trace without stacks has threads and phases, and no lines" without_stacks

by_line() {
  rows --by=line --inclusive | same /dev/fd/3 3<<'END'
app.cpp:30 0/1316
app.cpp:10 1000/1000
app.cpp:20 0/300
list.h:5 300/300
plugin.so+0x40 16/16
[unknown] 7/7
END
}
behaviour "--by=line --inclusive sorts lines by what they have with callees" by_line

by_library() {
  rows --by=library | same /dev/fd/3 3<<'END'
app 1300/1316
plugin.so 16/16
[unknown] 7/7
END
}
behaviour "--by=library puts allocations together by library" by_library

skipped() {
  rows --by=function --skip='^list::|parse' | same /dev/fd/3 3<<'END'
main 1000/1316
fill 300/300
plugin.so+0x40 16/16
[unknown] 7/7
END
}
behaviour "--skip charges the callers of functions that match" skipped

sorted() {
  for sort in bytes:parse blocks:parse live:list temporary:list peak:parse; do
    rows --by=function --sort=${sort%:*} --top=1 | grep -q "^${sort#*:}" || complain "--sort=$sort"
  done
}
behaviour "--sort and --top choose the contributor with the largest figure" sorted

moved() {
  printf 'malloc(8) = 1000<1>\nrealloc(1000<1>, 20) = 2000<2>\nrealloc(2000<2>, 30) = 2000<3>\n' >moved.trace
  trace2cmt -o moved.cmt moved.trace
  echo 'malloc(1) = 10<1>' >other.trace
  lifetimes --by=size --sort=reallocated moved.cmt | grep -q 'copied at most' || complain "--sort=reallocated has no moves"
  for form in '--by=size .total' '--by=size --diff=other.trace .contributors[].self.after'; do
    [ "$(lifetimes --json ${form% *} moved.cmt | jq "[${form##* } | .moved_bytes] | add")" = 8 ] || complain "moves of a .cmt: $form"
  done
}
behaviour "moved blocks of a .cmt are known without touched pages" moved

as_csv() {
  lifetimes --by=library --csv app.trace 2>messages | cut -d, -f1-5,29 | same /dev/fd/3 3<<'END'
name,allocated_blocks,allocated_bytes,peak_blocks,peak_bytes,stack
app,5,1490,2,1300,main;parse(int);parse(int);parse(int)
plugin.so,1,16,1,16,main;plugin.so+0x40
[unknown],1,7,1,7,
END
}
behaviour "--csv has a row for each contributor, with its largest stack" as_csv

folded() {
  lifetimes --folded=blocks app.trace 2>messages | same /dev/fd/3 3<<'END'
[unknown] 1
main;fill;list::push(int);std::__new_allocator<int>::allocate(unsigned long, void const*) 2
main;parse(int) 1
main;parse(int);parse(int);parse(int) 2
main;plugin.so+0x40 1
END
}
behaviour "--folded=blocks has a line for each stack, with its blocks" folded

folded_by_default() {
  lifetimes --folded app.trace 2>messages | cmp -s - <(lifetimes --folded=peak app.trace 2>messages) || complain "another output"
}
behaviour "--folded without a figure is --folded=peak" folded_by_default

from_pipe() {
  trace2cmt app.trace | lifetimes --folded=live 2>messages | awk '{ sum += $NF } END { exit sum != 373 }' || complain "another sum"
}
behaviour "--folded=live of a .cmt from a pipe adds up to the bytes live at the end" from_pipe

totals() {
  lifetimes --json app.trace | jq -c '[.inputs[0].peak_live_bytes, .inputs[0].peak_event, ([.sizes[].temporary_blocks] | add)]' >summary
  lifetimes --by=function --json app.trace 2>messages | jq -c '[.total.peak_bytes, .peak_event, .total.temporary_blocks]' | cmp -s - summary ||
    complain "other totals than --summary: $(cat summary)"
}
behaviour "the totals of --by are those of --summary" totals

# Names that no terminal should obey, and that are no UTF-8; a stack that is cut; a trace that breaks off.
printf '#module 1 begin=0 end=1000000 bias=0 path="/x\\x1b[31m;y"\n#frame 1 module=1 address=10\n#name 1 function="a\\n;b\\xff\\x1b[2J" file="\\x07" line=3\n#node 1 parent=0 frame=0\n#node 2 parent=1 frame=1\nmalloc(8) = 10<1> stack=2\nmalloc(' >odd.trace
without_control_characters() {
  for option in --by=function --by=caller --by=line --by=library --folded; do
    lifetimes $option odd.trace >out 2>messages || complain "$option of a damaged trace: $(cat messages)"
    if grep -q '[[:cntrl:]]' out; then complain "$option: control characters"; fi
  done
  lifetimes --folded odd.trace 2>messages | wc -l | grep -qx 1 || complain "--folded: not one line"
}
behaviour "names reach the terminal without their control characters" without_control_characters

damaged() {
  lifetimes --by=function --json odd.trace 2>messages | jq -e '.truncated or .defects > 0' >out || complain "$(cat out messages)"
}
behaviour "--json says that a trace is damaged" damaged

refuses() { local want=$1 got; shift; got=$(lifetimes "$@" app.trace 2>&1 >/dev/null) && complain "$*: not refused"; [ "$(head -n 1 <<<"$got")" = "lifetimes: $want" ] || complain "$*: $got"; }
wrong_values() {
  refuses "--by: expected function, caller, line, library, thread, size or phase, not 'x'" --by=x
  figures="bytes, blocks, peak, live, temporary, short-lived, other-thread, reallocated, growth or untouched"
  refuses "--sort: expected $figures, not 'x'" --by=line --sort=x
  refuses "--folded: expected $figures, not 'x'" --folded=x
  refuses "--min: expected a share, as 2.5%, not '101'" --by=line --min=101
  refuses "--slice: expected FROM:TO, FROM not above TO, in events, with a unit as in 1.5s:2s, or by marks as in @load:@done or @load, not 'x'" --by=line --slice=x
  refuses "app.trace: the trace has no mark \"x\"; it has none" --by=line --slice=@x:
  refuses "--skip: Unmatched ( or \\(" --by=line --skip='('
}
behaviour "a value that an option does not take is refused" wrong_values

wrong_combinations() {
  refuses "--focus is about call stacks: not with --by=size" --by=size --focus=x
  refuses "--slice needs --by, --diff, --folded, --pprof or --speedscope" --slice=1:2
  refuses "--top needs --by or --diff" --top=3
  refuses "--debug-dir needs --by, --diff, --folded, --pprof or --speedscope" --debug-dir=x
  refuses "--top does not go with --folded" --folded --top=3
  refuses "--summary does not go with --by" --by=line --summary
  refuses "--json does not go with --folded" --folded --json
}
behaviour "options that do not go together are refused" wrong_combinations

# The header knows only of the first events.
{ echo "#cmt text=1"
  for ((tag = 1; tag <= 2000; ++tag)); do echo "malloc(8) = $((tag + 100000))0<$tag>"; done
  echo "#frame 1 module=0 address=1010"
  echo "#name 1 function=late"
  echo "#node 1 parent=0 frame=1"
  echo "malloc(8) = 90<2001> stack=1"
  echo "#cmt end=complete"
} >late.trace
trace2cmt -o late.cmt late.trace || complain "late.cmt"
late_stacks() {
  for file in late.trace late.cmt; do
    lifetimes --folded=blocks $file | grep -qx "late 1" || complain "$file: the late stack is missing"
    trace2cmt --symbolise -o late.named.cmt $file || complain "$file: --symbolise"
  done
}
behaviour "stacks that begin late in a trace are found" late_stacks
exit $failed
