# The library that is loaded into traced programs needs only the C library, and brings no sanitizer along.

needed=$(readelf -d "$TRACER" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc\.so\.6|ld-linux-x86-64\.so\.2)$' || true)
[ -z "$needed" ] || { echo "libcmttrace.so needs $needed" >&2; exit 1; }
# By weak symbols the library finds out whether the program is sanitized.
undefined=$(nm -D --undefined-only "$TRACER" | grep -E '__(asan|tsan|ubsan)_' | grep -vE '^ +w __[a-z]+_init$' || true)
[ -z "$undefined" ] || { echo "libcmttrace.so calls $undefined" >&2; exit 1; }
