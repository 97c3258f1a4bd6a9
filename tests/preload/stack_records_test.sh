# The call stacks in the rings' records and in traces, against what the program itself knows of each of its allocations.

programs=$BUILD/tests/preload
failed=0
# The collector reads nothing: the program reads its own rings, in which pages of large blocks have no room.
export CMTTRACE_WAIT=0 CMTTRACE_COLLECTOR=$SOURCE/tests/preload/checks/idle_collector.py CMTTRACE_STACKS=1 CMTTRACE_TOUCHED=off
# The signal handlers allocate, and leave by longjmp, while the program allocates: glibc's heap does not survive that.
allocator_of() { case $1 in signals | jumps) echo "$programs/libbump.so" ;; esac; }
scene() {  # scene NAME [VARIABLE=VALUE]...
  local name=$1
  shift
  timeout 240 env "$@" LD_PRELOAD="$TRACER $(allocator_of "$name")" "$programs/stack_chains" "$name" >out 2>&1 && return
  echo "$name $*: exit $?: $(cat out)" >&2
  failed=1
}
for name in trees threads forks signals jumps recursion failing; do scene $name; done
for name in trees threads failing; do scene $name CMTTRACE_STACKS_OF_FREES=1 CMTTRACE_STAMPS=sparse; done
for frames in 1 2 3 7 20; do scene limited CMTTRACE_STACK_FRAMES=$frames; done

# In traces.
unset CMTTRACE_COLLECTOR CMTTRACE_TOUCHED
recorded() {  # recorded NAME LEAST [VARIABLE=VALUE]...
  local name=$1 least=$2
  shift 2
  rm -f t.trace known
  timeout 240 env "$@" CMTTRACE_WAIT=1 CMTTRACE_OUT=t.trace LD_PRELOAD="$TRACER $(allocator_of "$name")" \
    "$programs/stack_chains" "$name" known >out 2>&1 &&
    /usr/bin/python3 "$SOURCE/tests/preload/checks/stack_chains_check.py" t.trace known "$least" >>out 2>&1 && return
  echo "recorded $name $*: $(cat out)" >&2
  failed=1
}
for name in trees threads signals jumps recursion failing; do recorded $name 18; done
for name in trees threads signals jumps recursion; do recorded $name 0 CMTTRACE_ON_FULL=drop CMTTRACE_STACKS_OF_FREES=1; done
exit $failed
