# The library that is loaded into traced programs needs only the C library, and brings no sanitizer along.

needed=$(readelf -d "$TRACER" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc\.so\.6|ld-linux-x86-64\.so\.2)$' || true)
[ -z "$needed" ] || { echo "libcmttrace.so needs $needed" >&2; exit 1; }
needed=$(readelf -d "${TRACER%.so}-pools.so" | grep '(NEEDED)' || true)
[ -z "$needed" ] || { echo "libcmttrace-pools.so needs $needed" >&2; exit 1; }
# By weak symbols the library finds out whether the program is sanitized.
undefined=$(nm -D --undefined-only "$TRACER" | grep -E '__(asan|tsan|ubsan)_' | grep -vE '^ +w __[a-z]+_init$' || true)
[ -z "$undefined" ] || { echo "libcmttrace.so calls $undefined" >&2; exit 1; }
# musl's loader refuses a library that needs a function which musl lacks.
musl=$(find /lib /usr/lib -path '*linux-musl/libc.so' 2>/dev/null | head -n 1)
[ -n "$musl" ] || { echo "skipped: whether musl has all that libcmttrace.so needs: musl is not installed"; exit 0; }
nm -D --defined-only "$musl" | sed 's/.* //' | sort -u >musl
nm -D --undefined-only "$TRACER" | awk '$1 != "w" { sub("@.*", "", $2); print $2 }' | sort -u >needed
missing=$(comm -23 needed musl)
grep -qx malloc musl && [ -s needed ] || { echo "no symbols were read" >&2; exit 1; }
[ -z "$missing" ] || { echo "libcmttrace.so needs what musl lacks, other than by weak symbols: $missing" >&2; exit 1; }
