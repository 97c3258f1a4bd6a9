# trace2cmt --to=heaptrack: the text of the log, the message about losses, and a .cmt of it with the same totals and stacks.
# If heaptrack_print is installed, it reports the same totals as for heaptrack's own log.

shopt -s lastpipe  # so that "... | same" sets `failed` here
failed=0
complain() { echo "$*" >&2; failed=1; }
same() { diff "$2" - >difference || complain "$1:
$(cat difference)"; }

cat >app.trace <<'END'
#cmt text=1
#cmt program=/opt/app
#cmt command="app --fast"
#cmt page_size=8192
#module 1 begin=1000 end=9000 bias=1000 path=/opt/app
#frame 1 module=1 address=1010
#name 1 function=main file=app.cpp line=30
#frame 2 module=1 address=1020
#name 2 function="parse(int)" file=app.cpp line=10
#name 2 function="fi\x1b[2Jll" file=app.cpp line=20
#frame 3 module=0 address=7f01
#node 1 parent=0 frame=1
#node 2 parent=1 frame=2
#node 3 parent=2 frame=2
#node 4 parent=0 frame=0
#node 5 parent=4 frame=3
malloc(24) = a000<1> stack=3 time=900000
malloc(0) = b000<2> stack=2 time=2500000
malloc(24) = c000<3> stack=3 thread=1 time=2600000
free(a000<1>) time=18000000
realloc(b000<2>, 4096) = d000<4> stack=5 time=18000000
sample(32768) time=18000000
memalign(64, 100) = e000<5> time=19000000
free(e000<5>) thread=1 time=19000000
mark("load") time=19000000
#cmt end=complete
END
trace2cmt --to=heaptrack app.trace >app.heaptrack 2>messages || complain "$(cat messages)"
same "the log" app.heaptrack <<'END'
v 10400 3
X app --fast
I 2000 0
s 8 /opt/app
s 4 main
s 7 app.cpp
s a parse(int)
s 8 fi [2Jll
i 1010 1 2 3 1e
i 1020 1 4 3 a 5 3 14
i 7f01 0
t 1 0
t 2 1
t 2 2
t 3 0
a 18 3
+ 0
c 2
a 0 2
+ 1
+ 0
c 12
- 0
- 1
a 1000 4
+ 2
R 4
c 13
a 64 0
+ 3
- 3
END
same "the losses" messages <<'END'
trace2cmt: heaptrack cannot express 1 thread's start, end or name, or mark: left out; 1 call of another kind: written as the nearest of malloc, realloc and free; 1 alignment: dropped; 2 events of other threads than the first: written as if there were one
END

# The name's ending chooses the compression of the same log.
trace2cmt --to=heaptrack -o app.gz app.trace 2>/dev/null && gzip -dc app.gz | cmp - app.heaptrack || complain "gzip"
trace2cmt --to=heaptrack -o app.zst app.trace 2>/dev/null && zstd -dqc app.zst | cmp - app.heaptrack || complain "zstd"

# A conversion to .cmt and back changes nothing.
logs="$SOURCE/tests/logs/samples/heaptrack.log app.heaptrack"
for log in $logs; do
  trace2cmt -o back.cmt $log 2>messages || complain "$log: $(cat messages)"
  trace2cmt --to=heaptrack -o there.log back.cmt 2>messages || complain "$log: $(cat messages)"
  trace2cmt -o again.cmt there.log 2>messages || complain "$log again: $(cat messages)"
  for file in back again; do
    trace2cmt --info --json $file.cmt | jq -c '.totals | del(.by_kind)' >$file.totals
    lifetimes --by=function --json $file.cmt 2>/dev/null | jq -c '.total, (.contributors[] | [.name, .self, .stack])' >$file.stacks
  done
  cmp back.totals again.totals || complain "$log: other totals: $(cat back.totals again.totals)"
  diff back.stacks again.stacks >difference || complain "$log: other stacks: $(head -5 difference)"
done

# Without names, a message says how to get them.
sed '/^#name/d' app.trace | trace2cmt --to=heaptrack 2>messages | grep -x 'i 1010 1' >/dev/null || complain "without names"
grep -qx "trace2cmt: the call stacks have no names of functions; --symbolise looks for them" messages || complain "$(cat messages)"
sed '/^#\(name\|node\|frame\|module\)/d; s/ stack=[0-9]*//; s/ time=[0-9]*//' app.trace | trace2cmt --to=heaptrack 2>messages | grep -x 'a 18 0' >/dev/null || complain "without stacks"

# heaptrack_print reports the same for a log by heaptrack and for our conversion of it.
command -v heaptrack_print >/dev/null || { [ $failed = 0 ] && echo "skipped: heaptrack_print is not here" && exit 77; exit 1; }
report() { heaptrack_print --print-leaks yes --print-temporary yes "$1" 2>&1 | sed '/^reading file/d'; }
log=$SOURCE/tests/logs/samples/heaptrack.log
trace2cmt $log 2>/dev/null | trace2cmt --to=heaptrack -o own.zst 2>messages || complain "$(cat messages)"
report $log >theirs
report own.zst >ours
diff theirs ours >difference || complain "another report: $(head -20 difference)"
grep -q "^total memory leaked" theirs || complain "no report: $(cat theirs)"

# heaptrack_print counts two temporary allocations: the first free ends another block of the last allocation's size and stack.
report app.heaptrack >out
grep -e "^calls to" -e "^peak heap" -e "^total memory leaked" -e "^temporary memory" out | sed 's| (.*/s)||' | same "totals" /dev/fd/3 3<<'END'
calls to allocation functions: 5
temporary memory allocations: 2
peak heap memory consumption: 4.22K
total memory leaked: 4.12K
END
exit $failed
