# Symbols from a server that $DEBUGINFOD_URLS names, on the loopback: of a program without symbols, found by its build id.

ldconfig -p >libraries || PATH=$PATH:/sbin:/usr/sbin ldconfig -p >libraries
grep -q 'libdebuginfod\.so\.1 ' libraries || { echo "skipped: libdebuginfod is not installed"; exit 77; }
failed=0
complain() { echo "$*" >&2; failed=1; }
build_id=0123456789abcdef0123456789abcdef01234567

mkdir -p "served/buildid/$build_id"
cp "$BUILD/tests/symbols/debug/.build-id/01/23456789abcdef0123456789abcdef01234567.debug" "served/buildid/$build_id/debuginfo"
cp "$BUILD/tests/symbols/stripped" app
"$BUILD/tests/symbols/pie" | awk -F'\t' -v path="$PWD/app" -v id=$build_id '
  $1 == "bias" { print "#cmt text=1"; printf "#module 1 begin=%s end=ffffffffff00 bias=%s build_id=%s path=%s\n", $2, $2, id, path; next }
  { printf "#frame %d module=1 address=%s%s\n#node %d parent=%d frame=%d\n", ++n, $2, $1 == "exact" ? " exact=1" : "", n, n - 1, n
    printf "malloc(%d) = %x<%d> stack=%d\n", n * 10, n * 4096, n, n }
  END { print "#cmt end=complete" }' >app.trace

# The server prints its port, and what it is asked for.
python3 -c '
import functools, http.server
class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, text, *values): print(self.path, flush=True)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory="served"))
print(server.server_port, flush=True)
server.serve_forever()' >server.log 2>&1 &
server=$!
trap 'kill $server' EXIT
. "$SOURCE/tests/waiting.sh"
until_true '[ -s server.log ]'

lines() { DEBUGINFOD_CACHE_PATH=$PWD/cache DEBUGINFOD_URLS=$1 lifetimes --by=line app.trace 2>messages | grep -c 'sample.cpp:[0-9]' || true; }
[ "$(lines '')" = 0 ] || complain "lines without a server"
[ "$(lines "http://127.0.0.1:$(head -n 1 server.log)")" -gt 4 ] || complain "few lines: $(cat messages)"
grep -q "^/buildid/$build_id/debuginfo$" server.log || complain "the server was asked for: $(cat server.log)"

# Once fetched, it is kept; a server that does not answer is no error.
kill $server
trap - EXIT
[ "$(lines "http://127.0.0.1:$(head -n 1 server.log)")" -gt 4 ] || complain "it was not kept: $(cat messages)"
rm -r cache
[ "$(lines "http://127.0.0.1:$(head -n 1 server.log)")" = 0 ] || complain "lines from a server that is gone"
exit $failed
