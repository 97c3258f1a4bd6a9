# Without /proc each tool that needs it says that it is not mounted, with the status of its own failures.

[ "$(id -u)" = 0 ] || { echo "skipped: only root takes /proc away"; exit 77; }
unshare -m umount -l /proc 2>/dev/null || { echo "skipped: no mounts of its own here"; exit 77; }

failed=0
complain() { echo "$*" >&2; failed=1; }

/usr/bin/python3 "$SOURCE/tests/cmtreplay/make_trace.py" 100 >t.trace
# refuses STATUS NAME COMMAND...: without /proc.
refuses() {
  local wanted=$1 name=$2 status=0
  shift 2
  unshare -m sh -c 'umount -l /proc && exec "$@"' sh "$@" >out 2>err || status=$?
  [ "$status" = "$wanted" ] && [ "$(cat err)" = "$name: /proc is not mounted; 'mount -t proc proc /proc' as root mounts it" ] ||
    complain "$*: $status $(cat err)"
}
refuses 125 cmttrace cmttrace -o a.cmt -- true
refuses 125 cmttrace cmttrace --attach=1 -o a.cmt
refuses 1 cmtreplay cmtreplay --runs=1 t.trace
refuses 1 cmtreplay cmtreplay --suite --runs=1
refuses 1 'cmtwatch get' cmtwatch get 1
refuses 1 'cmtwatch wss' cmtwatch wss --duration=1s 1
refuses 1 'cmtwatch explain' cmtwatch explain 1
refuses 1 'cmtwatch record' cmtwatch record -o a.db 1
refuses 125 'cmtwatch record' cmtwatch record -o a.db -- true
refuses 125 'cmtwatch run' cmtwatch run -- true
refuses 126 cmt cmt record -o a.cmt true
[ "$(ls)" = "$(printf 'err\nout\nt.trace')" ] || complain "files are left: $(ls)"
exit $failed
