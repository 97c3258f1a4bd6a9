# Traces of real programs are in the canonical form: accepted with --strict, and the same after a trip through .cmt.

export CMTTRACE_OUT=%n.%p.trace
printf '#include <map>\nstd::map<int, int> m;\nint main() { return m[1]; }\n' >a.cpp
LD_PRELOAD=$TRACER g++ -O1 -c a.cpp
LD_PRELOAD=$TRACER bash -c 'echo a | cat | tr a b; (exit 1) || true' >out
LD_PRELOAD=$TRACER /usr/bin/python3 -c 'import json; print(json.dumps([1, "é"]))' 'an "argument"' $'\x01\xff' >out
LD_PRELOAD=$TRACER "$BUILD/tests/preload/exchange" stated
LD_PRELOAD=$TRACER "$BUILD/tests/preload/children" forks
for what in all sized refused errno; do LD_PRELOAD=$TRACER "$BUILD/tests/preload/calls" $what; done
CMTTRACE_TIME=1 LD_PRELOAD=$TRACER "$BUILD/tests/preload/calls" all
for trace in *.trace; do
  trace2cmt --strict -o t.cmt "$trace"
  trace2cmt --to=text t.cmt | cmp - "$trace"
  rm t.cmt
done
