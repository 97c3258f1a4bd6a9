# Checks that systems that are older than this one can load the tracer, by preload and while a program runs. The tracer
# needs no symbol of a newer glibc than 2.17 and no library but libc. Its thread-local storage fits the room that the
# loader keeps.

failed=0
complain() { echo "symbols: $*" >&2; failed=1; }
newer=$(objdump -T "$TRACER" | grep -oE 'GLIBC_2\.[0-9.]+\) [[:alnum:]_]+' |
  awk -F '[_.)]' '{ if ($3 + 0 > 17) print }')
[ -z "$newer" ] || complain "needs $newer"
objdump -T "$TRACER" | grep 'GLIBC_2\.2\.5' >/dev/null || complain 'objdump says nothing of versions'
[ "$(readelf -dW "$TRACER" | grep -c NEEDED)" = 1 ] || complain "$(readelf -dW "$TRACER" | grep NEEDED)"
bytes=$(($(readelf -lW "$TRACER" | awk '$1 == "TLS" { print $6 }')))
[ "$bytes" -gt 0 ] && [ "$bytes" -lt 256 ] || complain "$bytes bytes of thread-local storage"
exit $failed
