# The names of trace files; no file is ever overwritten.

calls=$BUILD/tests/preload/calls
failed=0
complain() { echo "$*" >&2; failed=1; }
traced() { LD_PRELOAD=$TRACER "$calls" all; }
there() { [ -s "$1" ] || complain "no $1, but $(find . -type f | tr '\n' ' ')"; }

(echo $BASHPID >pid; LD_PRELOAD=$TRACER exec "$calls" all)
there "calls.$(cat pid).trace"
grep -qx '#cmt program=calls' calls.*.trace || complain "no name in the header"
grep -qx "#cmt command=\"$calls all\"" calls.*.trace || complain "no command in the header"
grep -qx "#cmt pid=$(cat pid)" calls.*.trace || complain "no pid in the header"

(echo $BASHPID >pid; CMTTRACE_OUT=%n-%p-%%-%x.txt LD_PRELOAD=$TRACER exec "$calls" all)
there "calls-$(cat pid)-%-%x.txt"

echo precious >kept.trace
for _ in 1 2; do CMTTRACE_OUT=kept.trace traced; done
[ "$(cat kept.trace)" = precious ] || complain "a file was written over"
there kept.2.trace
there kept.3.trace

mkdir -p a.b
for _ in 1 2; do CMTTRACE_OUT=a.b/plain traced; done
there a.b/plain.2
CMTTRACE_OUT= traced
CMTTRACE_OUT=$PWD/absolute.trace traced
there absolute.trace

# One line about what is wrong, and the program goes on.
status=0
CMTTRACE_OUT=no/such/folder.trace LD_PRELOAD=$TRACER bash -c 'echo out; exit 4' >out 2>err || status=$?
[ $status = 4 ] && [ "$(cat out)" = out ] || complain "the program did not go on"
[ "$(cat err)" = "libcmttrace: cannot create $PWD/no/such/folder.trace: No such file or directory" ] || complain "said: $(cat err)"
[ "$failed" = 0 ]
