# Call stacks through trace2cmt: slices, threads, several inputs, --anonymise, --info, --verify, and damage.

failed=0
complain() { echo "wrong: $*" >&2; failed=1; }

cat >app.trace <<'END'
#cmt text=1
#module 1 begin=1000 end=9000 bias=1000 build_id=8c1fba20 loaded=5 path=/opt/me/secret
#frame 1 module=1 address=1100
#name 1 function=main file=secret.c line=3
#node 1 parent=0 frame=1
#frame 2 module=1 address=1200
#name 2 function=parse
#node 2 parent=1 frame=2
malloc(8) = 10<1> time=100 stack=2
malloc(16) = 30<2> thread=1 time=200 stack=1
#module 2 begin=20000 end=21000 bias=20000 path=/opt/me/lib.so
#frame 3 module=2 address=20010 exact=1
#node 3 parent=2 frame=3
malloc(24) = 50<3> time=300 stack=3
free(30<2>) time=400 stack=1
realloc(10<1>, 32) = 90<4> thread=1 time=500 stack=3
free(50<3>) time=600
#unloaded 2 time=550
#cmt end=complete
END
trace2cmt -o app.cmt app.trace
trace2cmt -s app.cmt | cmp - app.trace || complain "text, .cmt, text"
trace2cmt -s <app.cmt | grep -v '^#name' | cmp - <(grep -v '^#name' app.trace) || complain "text from a pipe"
trace2cmt -s <app.cmt | trace2cmt | trace2cmt -s >piped
[ "$(grep -c '^#name' piped)" = 2 ] || complain "names through pipes"

# A part of a trace has only the stacks that it uses, with its own numbers.
trace2cmt --slice=2: app.cmt | trace2cmt -s >part
diff -u - part <<'END' || complain "a slice"
#cmt text=1
#cmt slice=2:
#module 1 begin=1000 end=9000 bias=1000 build_id=8c1fba20 loaded=5 path=/opt/me/secret
#frame 1 module=1 address=1100
#node 1 parent=0 frame=1
#frame 2 module=1 address=1200
#node 2 parent=1 frame=2
malloc(8) = 10<1> time=100 stack=2
malloc(16) = 30<2> thread=1 time=200 stack=1
mark("slice 2:") time=200
#module 2 begin=20000 end=21000 bias=20000 path=/opt/me/lib.so
#frame 3 module=2 address=20010 exact=1
#node 3 parent=2 frame=3
malloc(24) = 50<3> time=300 stack=3
free(30<2>) time=400 stack=1
realloc(10<1>, 32) = 90<4> thread=1 time=500 stack=3
free(50<3>) time=600
#name 1 function=main file=secret.c line=3
#name 2 function=parse
#unloaded 2 time=550
#cmt end=complete
END
trace2cmt -s --thread=1 app.cmt | grep -v '^#' >part
diff -u - part <<'END' || complain "a thread"
malloc(16) = 30<2> thread=1 time=200 stack=1
free(30<2>) time=400 stack=1
realloc(0, 32) = 90<4> thread=1 time=500 stack=3
END

# Several inputs share a tree, but each has its own modules.
trace2cmt -s app.cmt app.trace >both
[ "$(grep -c '^#module' both) $(grep -c '^#frame' both) $(grep -c '^#unloaded' both)" = "4 6 2" ] || complain "joined: $(cat both)"
grep -qF 'malloc(8) = 1000000000010<5> thread=2 time=700 stack=5' both || complain "joined stacks: $(cat both)"
grep -qF '#module 3 begin=1000 end=9000 bias=1000 build_id=8c1fba20 loaded=605' both || complain "joined modules: $(cat both)"
trace2cmt app.cmt app.trace | trace2cmt --verify - >/dev/null || complain "joined and verified"

# In an anonymous trace, the shape of the stacks stays.
trace2cmt --anonymise app.cmt | trace2cmt -s >hidden
! grep -E 'secret|lib.so|main|parse|8c1f|1100|20010|loaded' hidden >&2 || complain "--anonymise tells"
grep '^#' hidden >part
diff -u - part <<'END' || complain "--anonymise"
#cmt text=1
#module 1 begin=0 end=0 bias=0 path="module 1"
#frame 1 module=1 address=1
#node 1 parent=0 frame=1
#frame 2 module=1 address=2
#node 2 parent=1 frame=2
#module 2 begin=0 end=0 bias=0 path="module 2"
#frame 3 module=2 address=1
#node 3 parent=2 frame=3
#cmt end=complete
END

# --info counts the stacks of a trace, and --verify checks them.
for form in app.cmt app.trace; do
  trace2cmt --info $form >out
  grep -q 'call stacks  3 nodes of 3 frames (2 with names) in 2 modules' out || complain "--info $form: $(cat out)"
  trace2cmt --info --json $form | grep -q '"stack_nodes": 3' || complain "--info --json $form"
  trace2cmt --verify $form >out || complain "--verify $form: $(cat out)"
done
sed 's/stack=3/stack=9/' app.trace | trace2cmt --verify - >out && complain "--verify of a stack that is not defined"
grep -q 'standard input:14: the stack 9 is not defined: left out' out || complain "--verify said: $(cat out)"
sed 's/stack=3/stack=9/' app.trace | trace2cmt --strict -o /dev/null - 2>err && complain "--strict of it"
for bad in "$SOURCE"/format-spec/vectors/bad_{stack,definitions,names}*.cmt; do
  trace2cmt --verify "$bad" >out 2>&1 && complain "--verify $bad: $(cat out)"
done

# Forms without stacks leave them out.
for form in csv legacy rep; do
  sed 's/ stack=[0-9]*//; /^#[mfnu]/d' app.trace >bare.trace
  cmp <(trace2cmt --to=$form app.cmt 2>/dev/null) <(trace2cmt --to=$form bare.trace 2>/dev/null) || complain "--to=$form"
done
exit $failed
