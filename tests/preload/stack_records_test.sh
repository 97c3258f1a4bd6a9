# The call stacks in the rings' records, against what the program itself knows of each of its allocations.

programs=$BUILD/tests/preload
failed=0
# The collector reads nothing: the program reads its own rings.
export CMTTRACE_WAIT=0 CMTTRACE_COLLECTOR=$SOURCE/tests/preload/idle_collector.py CMTTRACE_STACKS=1
scene() {  # scene NAME [VARIABLE=VALUE]...
  local name=$1
  shift
  env "$@" LD_PRELOAD="$TRACER" timeout 240 "$programs/stack_chains" "$name" >out 2>&1 && return
  echo "$name $*: exit $?: $(cat out)" >&2
  failed=1
}
for name in trees threads forks signals jumps recursion failing; do scene $name; done
for name in trees threads failing; do scene $name CMTTRACE_STACKS_OF_FREES=1 CMTTRACE_STAMPS=sparse; done
for frames in 1 2 3 7 20; do scene limited CMTTRACE_STACK_FRAMES=$frames; done
exit $failed
