# Each function of malloc(3) is recorded in a line of its own, and behaves as documented.

calls=$BUILD/tests/preload/calls
failed=0
traced() { rm -f t.trace; LD_PRELOAD=$TRACER CMTTRACE_OUT=t.trace "$calls" "$1" || { echo "$1: exit $?" >&2; failed=1; }
  /usr/bin/python3 "$SOURCE/tests/preload/checks/trace.py" t.trace >/dev/null || failed=1; }
has() { grep -qE "^$1( thread=[0-9]+)?\$" t.trace || { echo "no line $1" >&2; failed=1; }; }
b='[0-9a-f]+<[0-9]+>'

traced all
for line in 'malloc\(70001\)' 'calloc\(3, 70002\)' 'realloc\(0, 70003\)' "realloc\\($b, 70004\\)" \
  'reallocarray\(0, 2, 70005\)' "reallocarray\\($b, 2, 70006\\)" 'aligned_alloc\(64, 70016\)' \
  'posix_memalign\(128, 70007\)' 'memalign\(256, 70008\)' 'valloc\(70009\)' 'pvalloc\(70010\)' 'malloc\(0\)'; do
  has "$line = $b"
done
has 'free\(0\)'
has "realloc\\($b, 0\\) = 0"
[ "$(grep -c 'realloc.*7000[36]' t.trace)" = 2 ] || { echo "a call is recorded twice" >&2; failed=1; }

traced sized
has "free_sized\\($b, 70012\\)"
has "free_aligned_sized\\($b, 64, 70080\\)"

traced refused
for line in 'malloc\(9[0-9]+\)' 'calloc\(9[0-9]+, 16\)' "realloc\\($b, 9[0-9]+\\)" "reallocarray\\($b, 9[0-9]+, 16\\)" \
  'posix_memalign\(64, 9[0-9]+\)' 'posix_memalign\(3, 8\)' 'aligned_alloc\(64, 9[0-9]+\)' 'memalign\(64, 9[0-9]+\)' \
  'valloc\(9[0-9]+\)' 'pvalloc\(9[0-9]+\)'; do
  has "$line = 0"
done
has "free\\($b\\)"

traced errno
has 'thread_start\(\) thread=1'
has 'thread_exit\(\) thread=1'
has 'thread_name\("a \\"name\\""\)'
traced names_other
has 'thread_name\("named by other"\) thread=1'
traced messages
traced signals
[ "$(grep -c '^malloc(24)' t.trace)" = 2000 ] || { echo "events of a signal handler are missing" >&2; failed=1; }


# A handler that interrupts the tracer itself leaves its events to it: no deadlock, and no order broken.
rm -f t.trace
timeout 120 env LD_PRELOAD="$TRACER $BUILD/tests/preload/libbump.so" CMTTRACE_OUT=t.trace "$calls" interrupted ||
  { echo "interrupted: $?" >&2; failed=1; }
/usr/bin/python3 "$SOURCE/tests/preload/checks/trace.py" t.trace >/dev/null || failed=1

# A block whose allocation was never seen has a tag of the reserve below the first tag, while the reserve lasts. A block
# whose end was not seen is ended before its address is used anew, and the trace counts this.

traced other_names
[ "$(grep -c '^free([0-9a-f]*<[0-9]\{1,4\}>)$' t.trace)" -ge 902 ] || { echo "unseen" >&2; failed=1; }
tail -n 2 t.trace | paste -sd' ' | grep -qx '#cmt repairs_double_allocation=2 #cmt end=complete' || { echo "repairs: $(tail -n 2 t.trace)" >&2; failed=1; }

CMTTRACE_TIME=1 traced all
grep -q ' time=[0-9]*$' t.trace && ! grep '^[a-z]' t.trace | grep -qv ' time=' || { echo "events without a time" >&2; failed=1; }
[ "$failed" = 0 ]
