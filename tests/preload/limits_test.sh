# Where there is no room for the whole trace, the program goes on, with one line about it, and the trace does not pretend
# to be whole.

status=0
(ulimit -f 1500; CMTTRACE_OUT=t.trace LD_PRELOAD=$TRACER "$BUILD/tests/preload/exchange" stated) 2>err || status=$?
[ $status = 0 ] && [ -s stated ] || { echo "the program did not go on: $status" >&2; exit 1; }
[ "$(cat err)" = "libcmttrace: the limit on file sizes is reached by $PWD/t.trace (error 27)" ] || { cat err; exit 1; }
[ "$(grep -ac '^malloc\|^free\|^realloc' t.trace)" -gt 1000 ]
! grep -aq '^#cmt end=complete' t.trace
