# cmtwatch play shows a recording moment by moment, on a terminal and elsewhere.

. "$SOURCE/tests/cmtwatch/common.sh"
. "$SOURCE/tests/cmtwatch/made_up.sh"
rm -f ./*.db ./*.smaps

for i in 1 2 3; do
  { mapping 1000-3000 rw-p '[heap]' $((i * 100)) $((i * 100)); mapping 5000-6000 r--p "/name/$i" 4 4; } >$i.smaps
done
cmtwatch import -o three.db --pid=7 --name="$(printf 'a\033[2Jb')" --interval=1h 1.smaps 2.smaps 3.smaps || complain "import: $?"

# Without a terminal it prints all moments, and no control sequences.
cmtwatch play three.db >all || complain "play: $?"
[ "$(sed -n 's/^\(at .*\) (.*/\1/p' all)" = 'at 0.000 s
at 3600.000 s
at 7200.000 s' ] || complain "play: $(cat all)"
for i in 1 2 3; do
  cmtwatch show --at=$((3600 * (i - 1)))s three.db >moment
  grep -qxF "$(grep heap moment)" all && grep -q " /name/$i$" all || complain "moment $i: $(cat all)"
done
! LC_ALL=C grep -q "$(printf '\033')" all || complain "control characters"
cmtwatch play --pid=7 --interval=1ms --bytes three.db | grep -c ' heap$' | grep -qx 3 || complain "--interval"
cmtwatch play --speed=1e9 -v three.db | grep -c '^7 (a \[2Jb)' | grep -qx 3 || complain "--speed"
status_of cmtwatch play --pid=8 three.db
[ "$status" = 1 ] && [ "$(cat err)" = 'cmtwatch play: three.db: no such moment in the recording' ] || complain "nobody: $(cat err)"
status=0
{ cmtwatch play three.db 2>err || echo $? >status; } | head -n 1 >/dev/null
[ ! -s status ] || { [ "$(cat status)" = 141 ] && [ ! -s err ]; } || complain "a closed pipe: $(cat err)"

# On a terminal the keys work; whatever ends it, the terminal is restored.
terminal() { "$SOURCE/tests/cmtwatch/terminal.py" "$@" || complain "on a terminal: $1"; }
right='\x1b[C' left='\x1b[D'
terminal "see 0.000 s of 7200.000 s  playing; key $right; see 3600.000 s of 7200.000 s  paused; key $right; see end; key q; exit 0" \
  cmtwatch play three.db
terminal "see 100 KiB; key \\x1b[F; see 300 KiB; key $left; see 200 KiB; key $left; see 100 KiB; key $left; key \\r; see 200 KiB; key \\x1b[H; see 100 KiB; key q; exit 0" \
  cmtwatch play three.db
terminal "see playing; key \\x20; see paused; key \\x20; see playing; key x; key \\x03; exit 0" cmtwatch play three.db
for signal in INT TERM HUP QUIT; do
  terminal "see playing; signal $signal; exit 0" cmtwatch play three.db
done
terminal "see at 0.000; see at 3600.000; see 7200.000 s of 7200.000 s  end; key q; exit 0" cmtwatch play --interval=1ms three.db
terminal "see at 0.000; see at 3600.000; see 7200.000 s of 7200.000 s  end; key q; exit 0" cmtwatch play --speed=1e9 three.db
terminal "see playing; size 4 30; key $right; see 3600.000 s of 7200.000 s  pau; key q; exit 0" cmtwatch play three.db
# A narrow terminal shows numbers first and paths without their middle.
mapping 1000-3000 r--p "/a/very/long/folder/with/many/others/$(printf 'in%.0s' {1..40})/libname.so.7" 1000000 500000 >long.smaps
cmtwatch import -o long.db --name=long long.smaps || complain "import: $?"
for columns in 60 80 110; do
  terminal "see end; size 30 $columns; key \\x1b[H; see 1,000,000 KiB   500,000 KiB; see ...; see libname.so.7; see end; key q; exit 0" \
    cmtwatch play long.db
done
cmtwatch peak long.db | grep -q "inin/libname.so.7$" || complain "elsewhere a path is whole: $(cmtwatch peak long.db)"

# If several moments have the same memory, the first is the peak in every report.
process 7 77 same
cmtwatch record --root=proc --interval=1ms --count=5 --max-cost=100 -o same.db 7 >out || complain "same: $?"
[ "$(tail -n 1 out | sed 's/.* at \([0-9.]* s\);.*/\1/')" = "$(cmtwatch peak same.db | sed -n 's/^at \([0-9.]* s\) .*/\1/p')" ] &&
  [ "$(cmtwatch peak --json same.db | jq .tick)" = 1 ] || complain "the first peak: $(cat out) $(cmtwatch peak same.db | head -n 1)"
exit $failed
