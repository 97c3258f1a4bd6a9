# Checks how tools show the stacks of a Python program: --native, and names of functions, lines and packages.

source "$SOURCE/tests/behaviours.sh"
shopt -s lastpipe  # so that "... | same" sets `failed` here
same() { diff "$2" - >difference || complain "$1:
$(cat difference)"; }

# The frames: the interpreter's, the C library's, Python's, and those of an extension module and of one of the
# interpreter's own. Frame 3 both calls Python and allocates.
cat >frames <<'END'
#cmt text=1
#cmt program=python3.11
#module 1 begin=400000 end=900000 bias=0 path=/nowhere/python3.11
#module 2 begin=7f0000000000 end=7f0000200000 bias=7f0000000000 path=/nowhere/libc.so.6
#module 3 begin=0 end=0 bias=0 path=[python]
#module 4 begin=7f1000000000 end=7f1000200000 bias=7f1000000000 path=/opt/venv/lib/python3.11/site-packages/grid/_core.cpython-311-x.so
#module 5 begin=7f2000000000 end=7f2000200000 bias=7f2000000000 path=/opt/lib/python3.11/lib-dynload/_json.cpython-311-x.so
#frame 1 module=2 address=7f0000001000
#name 1 function=__libc_start_call_main
#frame 2 module=1 address=401000
#name 2 function=Py_RunMain
#frame 3 module=1 address=402000
#name 3 function=_PyObject_Call
#frame 4 module=1 address=403000
#name 4 function=list_resize file=listobject.c line=70
#frame 5 module=1 address=404000
#name 5 function=_PyMem_RawMalloc
#frame 6 module=3 address=1
#name 6 function=<module> file=/srv/shop/app.py line=60
#frame 7 module=3 address=2
#name 7 function=main.<locals>.run file=/srv/shop/app.py line=52
#frame 8 module=3 address=3
#name 8 function=load_rows file=/srv/shop/db/rows.py line=41
#frame 9 module=3 address=4
#name 9 function=load_rows file=/srv/shop/db/rows.py line=45
#frame 10 module=3 address=5
#name 10 function=make file=/opt/venv/lib/python3.11/site-packages/grid/shape.py line=9
#frame 11 module=4 address=7f1000001000
#name 11 function=grid_new file=core.c line=12
#frame 12 module=3 address=6
#name 12 function=loads file=/opt/lib/python3.11/json/__init__.py line=346
#frame 13 module=5 address=7f2000001000
#name 13 function=scan_once
#frame 14 module=3 address=7
#name 14 function=_find_and_load file="<frozen importlib._bootstrap>" line=1027
#frame 15 module=2 address=7f0000002000
#name 15 function=fopen
#frame 16 module=3 address=8
#name 16 function=__init__ file=__init__
END
cat >stacks <<'END'
#node 1 parent=0 frame=1
#node 2 parent=1 frame=2
#node 3 parent=2 frame=6
#node 4 parent=3 frame=3
#node 5 parent=4 frame=7
#node 6 parent=5 frame=8
#node 7 parent=6 frame=4
#node 8 parent=7 frame=5
#node 9 parent=5 frame=9
#node 10 parent=9 frame=15
#node 11 parent=5 frame=10
#node 12 parent=11 frame=11
#node 13 parent=12 frame=4
#node 14 parent=12 frame=3
#node 15 parent=14 frame=8
#node 16 parent=5 frame=12
#node 17 parent=16 frame=13
#node 18 parent=17 frame=4
#node 19 parent=3 frame=14
#node 20 parent=2 frame=3
#node 21 parent=5 frame=16
#node 22 parent=21 frame=8
#node 23 parent=22 frame=4
#node 24 parent=23 frame=5
malloc(1000) = a000<1> stack=24
malloc(200) = b000<2> stack=10
malloc(4000) = c000<3> stack=13
malloc(30) = d000<4> stack=15
malloc(500) = e000<5> stack=18
malloc(7) = f000<6> stack=19
malloc(60) = fa00<7> stack=20
malloc(80) = fb00<8> stack=4
END
{ cat frames stacks; echo '#cmt end=complete'; } >app.trace
trace2cmt app.trace -o app.cmt

# rows OPTION...: the figures and names of a table.
rows() { lifetimes --csv "$@" app.cmt | python3 -c '
import csv, sys
for row in csv.DictReader(sys.stdin):
    if row["peak_bytes"] != "0": print(row["peak_bytes"], row["name"])'; }

by_line_is_of_python() {
  rows --by=line | same "--by=line" /dev/fd/3 3<<'END'
4000 make (grid/shape.py:9)
1030 load_rows (db/rows.py:41)
500 loads (json/__init__.py:346)
200 load_rows (db/rows.py:45)
80 <module> (shop/app.py:60)
60 _PyObject_Call
7 _find_and_load (<frozen importlib._bootstrap>:1027)
END
}

# The functions of an extension module are its own; those of the interpreter, its modules and the C library hand on.
by_function_passes_over_the_interpreter() {
  rows --by=function | same "--by=function" /dev/fd/3 3<<'END'
4000 grid_new
1230 load_rows (db/rows.py)
500 loads (json/__init__.py)
80 <module> (shop/app.py)
60 _PyObject_Call
7 _find_and_load (<frozen importlib._bootstrap>)
END
  lifetimes --by=caller app.cmt | sed -n '/^grid_new/,/^load_rows/p' | awk '{ print $1, $2 }' |
    same "--by=caller" /dev/fd/3 3<<'END'
grid_new 3.91
<- make
<- main...>.run
<- <module>
load_rows (db/rows.py)
END
  rows --by=function --raw --top=2 | same "--raw charges the innermost function" /dev/fd/3 3<<'END'
4500 list_resize
1000 _PyMem_RawMalloc
END
  rows --by=function --skip='^grid_new$' --top=1 | same "--skip" /dev/fd/3 3<<<"4000 make (grid/shape.py)"
}

all_charges_native_functions() {
  rows --by=line --native=all | same "--by=line --native=all" /dev/fd/3 3<<'END'
5500 listobject.c:70
200 fopen
140 _PyObject_Call
30 load_rows (db/rows.py:41)
7 _find_and_load (<frozen importlib._bootstrap>:1027)
END
}

# With all frames it is the innermost module, with its package.
by_library_is_by_package() {
  rows --by=library | same "--by=library" /dev/fd/3 3<<'END'
4000 grid
1230 /srv/shop/db
500 python stdlib: json
80 /srv/shop
60 python3.11
7 python stdlib: importlib
END
}

folded_stacks() {
  lifetimes --folded=bytes app.cmt | same "--folded" /dev/fd/3 3<<'END'
<module> (shop/app.py);_PyObject_Call 80
<module> (shop/app.py);_find_and_load (<frozen importlib._bootstrap>) 7
<module> (shop/app.py);main.<locals>.run (shop/app.py);load_rows (db/rows.py);fopen 200
<module> (shop/app.py);main.<locals>.run (shop/app.py);load_rows (db/rows.py);list_resize;_PyMem_RawMalloc 1000
<module> (shop/app.py);main.<locals>.run (shop/app.py);loads (json/__init__.py);scan_once;list_resize 500
<module> (shop/app.py);main.<locals>.run (shop/app.py);make (grid/shape.py);grid_new;list_resize 4000
<module> (shop/app.py);main.<locals>.run (shop/app.py);make (grid/shape.py);grid_new;load_rows (db/rows.py) 30
__libc_start_call_main;Py_RunMain;_PyObject_Call 60
END
  lifetimes --folded=bytes --native=none app.cmt | same "--native=none" /dev/fd/3 3<<'END'
<module> (shop/app.py) 80
<module> (shop/app.py);_find_and_load (<frozen importlib._bootstrap>) 7
<module> (shop/app.py);main.<locals>.run (shop/app.py);load_rows (db/rows.py) 1200
<module> (shop/app.py);main.<locals>.run (shop/app.py);loads (json/__init__.py) 500
<module> (shop/app.py);main.<locals>.run (shop/app.py);make (grid/shape.py) 4000
<module> (shop/app.py);main.<locals>.run (shop/app.py);make (grid/shape.py);load_rows (db/rows.py) 30
__libc_start_call_main;Py_RunMain;_PyObject_Call 60
END
  lifetimes --folded=bytes --native=all app.cmt | grep 'load_rows.* 30$' | same "--native=all" /dev/fd/3 3<<'END'
__libc_start_call_main;Py_RunMain;<module> (shop/app.py);_PyObject_Call;main.<locals>.run (shop/app.py);make (grid/shape.py);grid_new;_PyObject_Call;load_rows (db/rows.py) 30
END
}

# The frames of a program that embeds Python stay, of the C library too; a stack that is cut is.
other_programs() {
  { sed 's|path=/nowhere/libc.so.6|path=/opt/server|' frames stacks; echo '#cmt end=complete'; } >embeds.trace
  lifetimes --folded=bytes embeds.trace | grep ' 1000$' | same "a program that embeds Python" /dev/fd/3 3<<'END'
__libc_start_call_main;<module> (shop/app.py);main.<locals>.run (shop/app.py);load_rows (db/rows.py);list_resize;_PyMem_RawMalloc 1000
END
  { cat frames; sed 's/^#node 1 .*/#node 1 parent=0 frame=0/' stacks; echo '#cmt end=complete'; } >cut.trace
  lifetimes --folded=bytes --native=none cut.trace | sed -n 1p | same "a stack that is cut" /dev/fd/3 3<<'END'
[cut];<module> (shop/app.py) 80
END
}

for_other_viewers() {
  lifetimes --pprof=app.pb.gz app.cmt
  python3 "$SOURCE/tests/analysis/read_pprof.py" app.pb.gz | grep -E '^location (6|8|13|14)|^sample: 1 (4000|30) ' |
    same "--pprof" /dev/fd/3 3<<'END'
location 6: 3 1 main.<locals>.run /srv/shop/app.py:52
location 8: 3 2 load_rows /srv/shop/db/rows.py:41
location 13: 3 4 make /opt/venv/lib/python3.11/site-packages/grid/shape.py:9
location 14: 4 7f1000000fff grid_new core.c:12
sample: 1 4000 1 4000 1 4000 0 at 14 13 6 4
sample: 1 30 1 30 1 30 0 at 8 14 13 6 4
END
  lifetimes --speedscope=app.json app.cmt
  tr -d ' \n' <app.json >app.line
  grep -q '"name":"load_rows(db/rows.py)","file":"/srv/shop/db/rows.py"' app.line || complain "--speedscope lacks load_rows"
  trace2cmt --to=heaptrack app.cmt -o app.heaptrack
  grep -q '^s 9 load_rows$' app.heaptrack || complain "--to=heaptrack lacks load_rows"
}

the_other_tools() {
  overhead --by=line app.cmt | grep -q '^load_rows (db/rows.py:41) ' || complain "overhead --by=line"
  sed -E 's/^malloc\(([0-9]+)\) = ([a-f0-9]+)/malloc(\1000) = \2000/' app.trace >large.trace
  cmtreport large.trace >report
  grep -q 'in main.<locals>.run (shop/app.py:52),' report || complain "cmtreport: $(cat report)"
  cmtreport --native=none large.trace >report
  grep -q '(grid/shape.py:9) (called by' report || complain "cmtreport --native=none: $(cat report)"
  lifetimes --diff=app.cmt --by=line --csv large.trace >difference.csv
  grep -q '^make (grid/shape.py:9),changed,3996000,' difference.csv || complain "--diff: $(cat difference.csv)"
}

wrong_use() {
  local status=0
  lifetimes --by=line --native=some app.cmt 2>message || status=$?
  [ "$status" = 2 ] && grep -q -- '--native' message || complain "--native=some: $status, $(cat message)"
  status=0
  lifetimes --by=thread --native=all app.cmt 2>message || status=$?
  [ "$status" = 2 ] || complain "--native with --by=thread: $status"
}

behaviour "by line, it is the innermost line of Python" by_line_is_of_python
behaviour "by function, the interpreter's functions only hand memory on" by_function_passes_over_the_interpreter
behaviour "with all native frames, the innermost native function is charged" all_charges_native_functions
behaviour "by library, it is by package of Python" by_library_is_by_package
behaviour "folded stacks have the native frames that --native chooses" folded_stacks
behaviour "the frames of a program that embeds Python stay" other_programs
behaviour "files for other viewers have Python's names" for_other_viewers
behaviour "overhead, cmtreport and --diff know Python's lines" the_other_tools
behaviour "a wrong --native is refused" wrong_use
exit $failed
