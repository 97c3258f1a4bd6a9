# Checks lifetimes --diff: the forms, how traces of different builds are matched, and wrong use.

shopt -s lastpipe  # so that "... | same" sets `failed` here
failed=0
complain() { echo "$*" >&2; failed=1; }
same() { diff "$2" - >difference || complain "$1:
$(cat difference)"; }

# before: main calls parse, which has push inlined. after: parse calls push; libx has another version and grows.
cat >before.trace <<'END'
#cmt text=1
#module 1 begin=1000 end=9000 bias=1000 path=/opt/app-1
#module 2 begin=20000 end=30000 bias=20000 path=/opt/libx.so.1.0
#frame 1 module=1 address=1010
#name 1 function=main file=app.cpp line=30
#frame 2 module=1 address=1020
#name 2 function=push file=list.h line=5
#name 2 function=parse file=app.cpp line=10
#frame 3 module=2 address=20040
#name 3 function=old<b>
#node 1 parent=0 frame=1
#node 2 parent=1 frame=2
#node 3 parent=1 frame=3
malloc(1000) = a000<1> stack=2
malloc(100) = b000<2> stack=2
free(b000<2>)
malloc(300) = c000<3> stack=3
#cmt end=complete
END
cat >after.trace <<'END'
#cmt text=1
#module 1 begin=2000 end=9000 bias=2000 path=/opt/app-2
#module 2 begin=40000 end=50000 bias=40000 path=/opt/libx.so.1.1
#frame 1 module=1 address=2010
#name 1 function=main file=app.cpp line=31
#frame 2 module=1 address=2020
#name 2 function=parse.constprop.0 file=app.cpp line=11
#frame 3 module=1 address=2030
#name 3 function=malloc
#name 3 function=push file=list.h line=6
#frame 4 module=2 address=40040
#name 4 function=grow
#node 1 parent=0 frame=1
#node 2 parent=1 frame=2
#node 3 parent=2 frame=3
#node 4 parent=1 frame=4
malloc(1000) = a000<1> stack=3
malloc(100) = b000<2> stack=3
free(b000<2>)
malloc(50) = b000<3> stack=3
malloc(700) = c000<4> stack=4
#cmt end=complete
END
lifetimes --diff=before.trace after.trace 2>messages | same "text" /dev/fd/3 3<<'END'
before: before.trace: 4 events; 3 blocks, 1.37 KiB; peak 1.27 KiB; at end 1.27 KiB; 1 temporary
after:  after.trace: 5 events; 4 blocks, 1.81 KiB; peak 1.71 KiB; at end 1.71 KiB; 1 temporary

function  change    share    before     after  at peak  allocated  blocks  at end
grow      +700 B  +66.7 %       0 B     700 B   +700 B     +700 B      +1  +700 B  new
old<>     -300 B  -28.6 %     300 B       0 B   -300 B     -300 B      -1  -300 B  gone
push       +50 B   +4.8 %    1000 B  1.03 KiB    +50 B      +50 B      +1   +50 B
all       +450 B           1.27 KiB  1.71 KiB   +450 B     +450 B      +1  +450 B

sorted by the change of live at the peak; share: of all changes of that figure, without their signs, 1.03 KiB

+700 B in the stack
  grow in libx.so.1.1
  main in app-2

-300 B in the stack
  old<b> in libx.so.1.1
  main in app-2

+50 B in the stack
  push in app-2
  parse in app-2
  main in app-2
END
[ ! -s messages ] || complain "$(cat messages)"
lifetimes --diff=before.trace before.trace | tail -n 1 | same "a trace and itself" /dev/fd/3 3<<'END'
no difference
END

# rows OPTION...: name, change, share in thousandths.
rows() { lifetimes --json "$@" 2>messages | jq -r '.contributors[] | "\(.name) \(.change) \(.share * 1000 | round) \(.status)"'; }
rows --diff=after.trace before.trace | same "the other way" /dev/fd/3 3<<'END'
grow -700 -667 gone
old<b> 300 286 new
push -50 -48 changed
END
rows --diff=before.trace --by=library --sort=blocks after.trace | same "by library" /dev/fd/3 3<<'END'
app-2 1 1000 changed
libx.so.1.1 0 0 changed
END
rows --diff=before.trace --by=size --sort=live --top=2 after.trace | same "by size" /dev/fd/3 3<<'END'
640 - 767 bytes 700 667 new
256 - 319 bytes -300 -286 gone
END
rows --diff=before.trace --inclusive --focus=libx --min=1% after.trace | same "with callees" /dev/fd/3 3<<'END'
grow 700 700 new
main 400 400 changed
old<b> -300 -300 gone
END
lifetimes --diff=before.trace --by=function --focus=nowhere after.trace >/dev/null 2>messages
grep -qF 'no stack has a function, file, line or library that is asked for' messages
lifetimes --diff=before.trace --by=caller --csv after.trace 2>messages | cut -d, -f1-6 | same "CSV" /dev/fd/3 3<<'END'
name,status,change,share,may_be_chance,before_allocated_blocks
grow,new,700,0.6666666666666666,false,0
grow <- main,,700,,,0
old<b>,gone,-300,-0.2857142857142857,false,1
old<b> <- main,,-300,,,1
push,changed,50,0.047619047619047616,false,2
push <- parse,,50,,,2
push <- parse <- main,,50,,,2
END
# Twenty functions that are called at random, and one that makes a block more at each call.
at_random() {  # at_random SEED MORE
  echo '#cmt text=1'
  for i in {1..21}; do echo "#frame $i module=0 address=$((i * 16))"; echo "#name $i function=f$i"; echo "#node $i parent=0 frame=$i"; done
  awk -v seed="$1" -v more="$2" 'BEGIN { srand(seed); for (i = 1; i <= 4000; ++i) { f = int(rand() * 21) + 1
    printf "malloc(%d) = %x<%d> stack=%d\n", f < 4 ? 5000 : 50, 8192 * i, ++tag, f
    if (f == 21 && more) printf "malloc(%d) = %x<%d> stack=%d\n", more, 8192 * i + 8000, ++tag, f } }'
  echo '#cmt end=complete'
}
at_random 3 0 >first.trace; at_random 4 100 >second.trace
lifetimes --diff=first.trace --sort=bytes second.trace >text 2>messages
sed -n '/^function  *change/{n;p;q;}' text | grep -q '^f21 ' || complain "not the cause first: $(cat text)"
grep -q '^f[123] .* chance?$' text && grep -q '^chance?: [0-9]* changed no more than calls in random order do' text || complain "chance is not told: $(cat text)"
rows --diff=first.trace --sort=bytes second.trace | head -n 1 | grep -q '^f21 ' || complain "JSON: not the cause first"
lifetimes --diff=first.trace --sort=bytes --json second.trace | jq -e '.dispersion > 0.1 and .may_be_chance > 10 and (.contributors[0].may_be_chance | not)' >out || complain "JSON: chance"
cmtreport --diff=first.trace second.trace >text 2>messages
tr -s ' \n' ' ' <text | grep -q 'fewer blocks ([^)]*), [0-9.]* % of all changes of blocks allocated, no more than calls in random order do' || complain "cmtreport: chance is not told: $(cat text)"
lifetimes --diff=before.trace --slice=3: --json after.trace | jq -c '[.slice, .before.events, .after.events, .change]' | same "of a slice" /dev/fd/3 3<<'END'
["3:",1,2,450]
END

refused() {  # refused STATUS WORDS OPTION...
  local status=0 expected=$1 words=$2; shift 2
  lifetimes "$@" >out 2>err </dev/null || status=$?
  [ "$status" = "$expected" ] && grep -qF -- "$words" err || complain "$*: exit $status, $(cat err)"
}
sed '/^#module\|^#frame\|^#name\|^#node/d; s/ stack=.*//' after.trace >plain.trace
lifetimes --diff=plain.trace --by=thread after.trace >out 2>err || complain "--by=thread: $(cat err)"
refused 1 'plain.trace: call stacks were not recorded' --diff=plain.trace after.trace
refused 1 'plain.trace: call stacks were not recorded' --diff=after.trace plain.trace
refused 1 'gone.trace: No such file' --diff=gone.trace after.trace
refused 2 '--diff needs two traces' --diff=-
refused 2 "argument for option '--diff'" --diff= after.trace
refused 2 '--summary does not go with --diff' --diff=after.trace --summary after.trace
refused 2 '--diff does not go with --folded' --diff=after.trace --folded after.trace
refused 1 'touched pages were not recorded' --diff=before.trace --sort=untouched after.trace
exit $failed
