# Call stacks are captured on memory of the tracer: coroutines and signal handlers on small stacks have room.

failed=0
LD_PRELOAD=$TRACER CMTTRACE_STACKS=1 CMTTRACE_OUT=t.cmt "$BUILD/tests/preload/small_stack" >used
# The allocator itself takes 150 to 300. A large block, whose pages the kernel is asked about, has more.
[ "$(wc -l <used)" = 6 ] && awk '$2 < 100 || $2 > ($1 == "large" ? 2300 : 1000) { exit 1 }' used || { cat used >&2; failed=1; }
# All pairs of calls have the stack of the function that made them.
lifetimes --by=function t.cmt --csv >functions.csv
grep -q '^allocate,4,' functions.csv && grep -q '^allocate_large,2,' functions.csv || { cat functions.csv >&2; failed=1; }
[ "$failed" = 0 ]
