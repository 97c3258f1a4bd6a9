# cmttrace --attach and --detach: a program that runs is recorded for a while, and does not notice it.

. "$SOURCE/tests/waiting.sh"
unset CMTTRACE_WAIT CMTTRACE_STATUS
failed=0
complain() { echo "$*" >&2; failed=1; }
programs=$BUILD/tests/preload
status_of() { status=0; "$@" >out 2>err </dev/null || status=$?; }
started=()
trap 'kill -KILL "${started[@]}" 2>/dev/null || true' EXIT

# Starts a program that makes as many blocks as a line of its input says. start HOW [COMMAND...]: "marked HOW", by that command; its pid is $target.
start() {
  rm -f in said
  mkfifo in said
  "${@:2}" "$programs/marked" "$1" <in >said 2>target_err &
  target=$!
  started+=("$target")
  exec 3>in 4<said
  make_blocks 1
}
make_blocks() { echo "$1" >&3; read -r answer <&4 && [ "$answer" = made ] || complain "the program says '$answer'"; }
stop() { exec 3>&- 4<&-; wait "$target" || complain "the program's exit: $?"; }
# attach OPTION...: in the background, until it records
attach() {
  : >err  # not the last one's
  cmttrace --attach="$target" "$@" >out 2>err </dev/null 3>&- 4<&- &
  tracer=$!
  started+=("$tracer")
  until_true 'grep -q "records process" err || ! kill -0 $tracer'
  grep -q 'records process' err || complain "attach $*: $(cat err)"
}
# ended STATUS PATTERN: of the attach that was begun last
ended() {
  status=0
  wait "$tracer" || status=$?
  [ "$status" = "$1" ] && grep -qE "$2" err || complain "exit $status, not $1: $(cat err)"
}
blocks_in() { trace2cmt --text "$1" | grep -c '^malloc(60006)'; }
pprof() { /usr/bin/python3 "$SOURCE/tests/analysis/read_pprof.py" --totals "$1" | cut -d' ' -f1-4; }
left() { grep -c 'memfd:cmttrace' "/proc/$target/maps" || true; }

start blocks
status_of cmttrace --attach="$target" --duration=1ms -o probe.cmt
if [ "$status" = 125 ] && grep -qE 'ptrace_scope|CAP_SYS_PTRACE' err; then
  echo "skipped: $(cat err)"
  exit 77
fi
[ "$status" = 0 ] || complain "for a millisecond: $(cat err)"
ln -s "$(type -P sleep)" by_link
for title in ./by_link 'by_link: master process /usr/sbin/other' "$PWD/by_link *:80"; do
  (exec -a "$title" ./by_link 100) &
  started+=($!)
  until_true 'grep -qx by_link "/proc/$!/comm"'
  status_of cmttrace --attach=$! --duration=1ms -o probe.%n.cmt
  [ "$status" = 0 ] && trace2cmt --info probe.by_link.cmt | grep -qE ' program +by_link$' || complain "$title: $(cat err)"
  rm probe.by_link.cmt
  kill $!
done
trace2cmt --info probe.cmt | grep 'allocator  *libc[.]so' >/dev/null || complain "not libc's: $(trace2cmt --info probe.cmt | grep allocator)"
status_of cmttrace --attach="$target" --duration=1ms -o /dev/full
[ "$status" = 125 ] && [ "$(cat err)" = 'cmttrace: /dev/full: a trace is a regular file, and this is none' ] || complain "to a device: $status $(cat err)"
stub=$(left) files=$(ls "/proc/$target/fd" | wc -l)

# The trace has the calls between attach and detach, and no others; three times, with three ways to detach.
for how in INT TERM --detach; do
  make_blocks 100
  attach -o "app$how.cmt" --stacks --pprof="app$how.%p.pb.gz" --pprof-files=1
  make_blocks 1000
  for number in 1 2; do
    kill -USR1 $tracer
    until_true "test -f app$how.$target.000$number.pb.gz"
  done
  if [ $how = --detach ]; then
    cmttrace --detach "$target" 2>detached || complain "--detach: $? $(cat detached)"
    ended 0 "^cmttrace: app--detach.cmt: [0-9,]+ allocations by 1 thread, "
  else
    kill -$how $tracer
    ended 0 "^cmttrace: app$how.cmt: [0-9,]+ allocations by 1 thread, .*(nothing was lost|allocation was not seen)$"
  fi
  make_blocks 10
  [ "$(blocks_in app$how.cmt)" = 1000 ] || complain "$how: $(blocks_in app$how.cmt) blocks of 1000"
  trace2cmt --verify app$how.cmt >verified 2>&1 || complain "$how: $(cat verified)"
  lifetimes --pprof=whole.pb.gz "app$how.cmt" 2>/dev/null || complain "$how: no profile of the trace"
  [ "$(pprof "app$how.$target.pb.gz")" = "$(pprof whole.pb.gz)" ] && [ "$(ls app$how.$target.*.pb.gz | wc -l)" = 1 ] ||
    complain "$how: profiles: $(pprof "app$how.$target.pb.gz"), not $(pprof whole.pb.gz); $(ls app$how.*.pb.gz)"
done
trace2cmt --info appINT.cmt | grep -qE "^ +pid +$target$" || complain "the trace has another process: $(trace2cmt --info appINT.cmt)"
[ "$(left)" = "$stub" ] && [ "$(ls "/proc/$target/fd" | wc -l)" = "$files" ] || complain "left behind: $(left) mappings, $(ls -l "/proc/$target/fd")"

# While it is recorded it cannot be attached to; nor when another process traces it, or it is stopped.
attach -o one.cmt
cp err err.first
status_of cmttrace --attach="$target" -o two.cmt
[ "$status" = 125 ] && grep -qx "cmttrace: process $target (marked) is recorded already; 'cmttrace --detach=$target' ends that" err ||
  complain "twice: $status $(cat err)"
[ ! -e two.cmt ] || complain 'a refused attach left a trace'
cp err.first err
kill -KILL "$tracer"
{ wait "$tracer" || true; } 2>/dev/null
make_blocks 700  # its recorder is gone, its collector is not
status_of cmttrace --detach "$target"
[ "$status" = 0 ] && grep -q "^cmttrace: process $target (marked) is no longer recorded; a thread of it was stopped for " err || complain "--detach: $status $(cat err)"
until_true 'trace2cmt --verify one.cmt >verified'
[ "$(blocks_in one.cmt)" = 700 ] || complain "cmttrace was killed: $(blocks_in one.cmt) blocks of 700"
status_of cmttrace --detach "$target"
[ "$status" = 125 ] && grep -qx "cmttrace: process $target (marked) is not recorded by an attach" err || complain "nothing to detach from: $status $(cat err)"
kill -STOP "$target"
until_true "grep -q '^State:.T' /proc/$target/status"
status_of cmttrace --attach="$target"
kill -CONT "$target"
[ "$status" = 125 ] && grep -q 'is stopped by a signal: let it go on first (kill -CONT)$' err || complain "a stopped one: $status $(cat err)"


# Nor while another process traces it, or another cmttrace is at work on it. The target is as before each time.
maps=$(left)
traced() {  # COMMAND... : runs it, and waits until it has said a line
  rm -f traces  # else the line of the one before is seen until the new process opens the file
  "$@" >traces &
  other=$!
  started+=("$other")
  until_true '[ -s traces ] || ! kill -0 $other'
  [ -s traces ] || complain "does not begin: $*"
}
untraced() { kill -KILL "$other"; { wait "$other" || true; } 2>/dev/null; }
traced perl -e '$| = 1; syscall(101, 0x4206, int(shift), 0, 0) == 0 and print "traces\n" and sleep 1000' "$target"
for action in "--attach=$target -o refused.cmt" "--detach=$target"; do
  status_of cmttrace $action
  [ "$status" = 125 ] && grep -qE "^cmttrace: process $target \(marked\) (cannot be attached to: $other \(perl\) traces it already|is not recorded by an attach)$" err ||
    complain "$action, traced by another: $status $(cat err)"
done
untraced
traced perl -e '$| = 1; open F, "<", "/proc/$ARGV[0]/mem" and flock F, 2 and print "locks\n" and sleep 1000' "$target"
for action in "--attach=$target -o refused.cmt" "--detach=$target"; do
  status_of cmttrace $action
  [ "$status" = 125 ] && grep -qx "cmttrace: process $target (marked): another cmttrace or cmtwatch calls functions in it; try again" err ||
    complain "$action beside another: $status $(cat err)"
done
untraced
status_of sh -c 'exec cmttrace --attach=$$ -o refused.cmt'
[ "$status" = 125 ] && grep -qE '^cmttrace: process [0-9]+ \(cmttrace\) is this cmttrace, which cannot attach to itself$' err ||
  complain "to itself: $status $(cat err)"
[ ! -e refused.cmt ] && [ "$(left)" = "$maps" ] && [ "$(ls "/proc/$target/fd" | wc -l)" = "$files" ] || complain "refused attaches left: $(left) mappings"
# Several at once: one records, and the others are refused.
before=$(left) pids=()
for i in 1 2 3; do
  cmttrace --attach="$target" --duration=1ms -o "at_once.$i.cmt" >out.$i 2>err.$i </dev/null 3>&- 4<&- &
  pids+=($!)
done
done_ones=0
for i in 1 2 3; do
  status=0
  wait "${pids[i - 1]}" || status=$?
  [ "$status" = 0 ] && done_ones=$((done_ones + 1)) && continue
  [ "$status" = 125 ] && grep -qE "is recorded already|traces it already|another cmttrace" err.$i || complain "at once: $status $(cat err.$i)"
done
[ "$done_ones" -ge 1 ] || complain "three at once: none records: $(cat err.1 err.2 err.3)"
make_blocks 3
[ "$(left)" = "$before" ] && [ "$(ls "/proc/$target/fd" | wc -l)" = "$files" ] || complain "three at once left: $(left) mappings"

# The program ends while it is recorded.
attach -o last.cmt
make_blocks 50
stop
ended 0 '^cmttrace: last.cmt: [0-9,]+ allocations by 1 thread, '
grep -qx "cmttrace: process $target (marked) has ended" err || complain "the program's end: $(cat err)"
[ "$(blocks_in last.cmt)" = 50 ] || complain "to the end: $(blocks_in last.cmt) blocks of 50"
[ ! -s target_err ] || complain "on the program's standard error: $(cat target_err)"
start blocks
attach -o killed.cmt
make_blocks 60
kill -KILL "$target"
wait "$target" 2>/dev/null || true
ended 0 ' killed.cmt: '
[ "$(blocks_in killed.cmt)" = 60 ] || complain "killed: $(blocks_in killed.cmt) blocks of 60"

# The last events: by a signal while it runs, and at the end. They are so few that none is dropped.
start blocks
attach -o keep.cmt --keep=1h,64K
make_blocks 40000
kill -USR1 "$tracer"
until_true 'grep -q "in keep.kept.1.cmt: [0-9,]* bytes" err'
make_blocks 20
kill -INT "$tracer"
ended 0 ' keep.cmt: '
for file in keep.kept.1.cmt keep.cmt; do trace2cmt --verify $file >verified || complain "$file: $(cat verified)"; done
[ "$(blocks_in keep.kept.1.cmt)" = 40000 ] && [ "$(blocks_in keep.cmt)" = 40020 ] ||
  complain "kept: $(blocks_in keep.kept.1.cmt) blocks of 40,000, then $(blocks_in keep.cmt) of 40,020"
make_blocks 1
[ "$(left)" = "$stub" ] || complain "after --keep: $(left) mappings"
stop

# Children of a process that was attached to: each has a trace, which does not end with the parent's.
start forks
attach -o family.cmt --follow=yes
for i in 1 2 3; do make_blocks 70; done
kill -INT "$tracer"
ended 0 "^cmttrace: 3 more traces: "
[ "$(ls family.*.cmt | wc -l)" = 3 ] || complain "traces of 3 children: $(ls family*)"
for file in family.*.cmt; do
  trace2cmt --verify "$file" >verified || complain "$file: $(cat verified)"
  [ "$(blocks_in "$file")" = 70 ] || complain "$file: $(blocks_in "$file") blocks of 70"
done
make_blocks 5
[ "$(ls family.*.cmt | wc -l)" = 3 ] || complain "a child after the detach is recorded: $(ls family*)"
# Without it they are not.
attach -o alone.cmt
make_blocks 70
kill -INT "$tracer"
ended 0 "^cmttrace: alone.cmt: [0-9,]+ allocations? by [01] threads?, "
[ "$(ls alone*.cmt)" = alone.cmt ] && [ "$(blocks_in alone.cmt)" = 0 ] || complain "not to be followed: $(ls alone*)"
stop
[ ! -s target_err ] || complain "on a child's standard error: $(cat target_err)"

# A program has put a title over its name: its children's traces have the name that the attach knows, which is no folder.
mkfifo titled
perl -e '$0 = "app: x/../../escaped"; <STDIN>; fork or my @kept = map { "y" x 1000 } 1 .. 3000; wait' <titled &
target=$! started+=($!)
exec 3>titled
until_true 'grep -q "^app: x" "/proc/$target/comm"'
attach -o 'titled.%n.%p.cmt' --follow=yes
echo >&3
exec 3>&-
ended 0 "^cmttrace: 1 more trace: "
wait "$target" || complain "a program with a title: $?"
[ "$(ls titled.perl.*.cmt | wc -l)" = 2 ] || complain "traces of a program with a title: $(ls titled*) $(cat err)"

# One line says why a process cannot be attached to.
refused() {  # PID PATTERN
  status_of cmttrace --attach="$1" -o refused.cmt
  [ "$status" = 125 ] && [ "$(wc -l <err)" = 1 ] && grep -qE "$2" err && [ ! -e refused.cmt ] || complain "$2: $status $(cat err)"
}
refused "$target" "^cmttrace: there is no process $target$"
start blocks env LD_PRELOAD="$TRACER" CMTTRACE_OUT=preloaded.trace
refused "$target" "is recorded already: it was started with .*libcmttrace.so$"
stop
if echo 'int main(void) { for (;;) __builtin_ia32_pause(); }' >spin.c && cc -static spin.c -o static.out 2>/dev/null; then
  ./static.out 3>&- 4<&- &
  started+=("$!")
  until_true "grep -q static.out /proc/$!/maps"
  refused "$!" 'is linked statically: nothing can be loaded into it; link it dynamically to record it$'
  kill -KILL "$!"
fi
for wrong in '--attach=0' '--attach=x' '--attach=1 ls' '--detach=1 --stacks' '--duration=1s true' '--attach=1 --rings=x' '--force true'; do
  status_of cmttrace $wrong
  [ "$status" = 125 ] && grep -q "^Try 'cmttrace --help'" err || complain "$wrong: $status $(cat err)"
done

# A malloc of the program's own is where its functions are, and not what lies between them.
mkfifo hold ready
"$programs/spread_malloc" <hold >ready &
target=$! started+=($!)
exec 3>hold 4<ready
read -r answer <&4
status_of cmttrace --attach="$target" --duration=1ms -o spread.cmt
[ "$status" = 0 ] && grep -q 'malloc of its own' err || complain "a spread malloc: $status $(cat err)"
stop

# In namespaces of its own.
are_named() {  # TRACE
  lifetimes --by=function --json "$1" >functions.json 2>messages
  jq -e '[.contributors[].name] | index("block") and index("blocks") and index("main")' functions.json >/dev/null && [ ! -s messages ] ||
    complain "$1: $(cat messages) $(jq -c '[.contributors[].name]' functions.json)"
}
if [ "$(unshare -mpnf --mount-proc echo yes 2>/dev/null)" = yes ]; then
  mkdir -p x
  start blocks unshare -mpnf --mount-proc sh -c 'mount -t tmpfs none x && cp "$1" x/own && shift && exec x/own "$@"' sh
  until_true "pgrep -P $target"
  outer=$target target=$(pgrep -P "$target")
  attach -o contained.cmt --stacks
  make_blocks 80
  kill -INT "$tracer"
  ended 0 ' contained.cmt: '
  [ "$(blocks_in contained.cmt)" = 80 ] || complain "in namespaces: $(blocks_in contained.cmt) blocks of 80"
  trace2cmt --info contained.cmt | grep -qE "^ +pid +$target$" || complain 'in namespaces: the trace has another process'
  # The program's file is in its namespace only: its functions have names all the same.
  [ ! -e x/own ] || complain 'the program is seen from here'
  are_named contained.cmt
  status_of cmttrace --attach="$target" --follow=yes -o x/children.cmt
  [ "$status" = 125 ] && grep -qx "cmttrace: process $target (own) cannot be attached to with its children: it does not see $PWD/x, as they would have to (another mount namespace?)" err ||
    complain "children that do not see the trace's folder: $status $(cat err)"
  # They are found where the process has ended meanwhile, and its namespace with it.
  attach -o ended.cmt --stacks
  make_blocks 30
  target=$outer
  stop
  ended 0 ' ended.cmt: '
  [ "$(blocks_in ended.cmt)" = 30 ] || complain "in namespaces, to the end: $(blocks_in ended.cmt) blocks of 30"
  are_named ended.cmt
else
  echo 'not tested: unshare may not make namespaces here'
fi
# A process that names other files in the memory that it shares with its collector: they stay, and the trace is whole.
echo precious >precious
mkfifo overwrite
"$programs/overwrites" names "$PWD/precious" <overwrite &
target=$!
started+=("$target")
exec 3>overwrite
# The shell opens the file before it executes the program.
until_true 'awk "/overwrites/ { begun = 1 } /libc.so/ { loaded = 1 } END { exit !(begun && loaded) }" "/proc/$target/maps"'
attach -o overwritten.cmt
echo now >&3
ended 0 '^cmttrace: overwritten.cmt: [0-9]+ allocations by 1 thread, .*nothing was lost'
exec 3>&-
wait "$target" || complain "overwrites: $?"
[ "$(cat precious)" = precious ] || complain "a file that the process named: $(ls -l precious; cat precious)"
trace2cmt --verify overwritten.cmt >verified || complain "overwritten.cmt: $(cat verified)"

# A word of data that began as malloc, and in which the program has stored a function of another library, as the module
# _decimal of Python does. The calls of this function are seen.
cat >wrap.c <<'END'
#include <stdlib.h>
void* wrapped(size_t size) {
  void* made = malloc(size);
  if (!made) abort();
  return made;
}
END
cat >stored.c <<'END'
#include <stdlib.h>
void* wrapped(size_t);
static void* (*volatile make)(size_t) = malloc;
void store(void) { make = wrapped; }
void* made(size_t size) { return make(size); }
END
cat >stores.c <<'END'
#include <stdio.h>
void store(void);
void* made(unsigned long);
int main(void) {
  int blocks;
  store();
  while (scanf("%d", &blocks) == 1) {
    while (blocks-- > 0) made(60006);
    puts("made");
    fflush(stdout);
  }
}
END
gcc -shared -fPIC -o libwrap.so wrap.c
gcc -shared -fPIC -o libstored.so stored.c -L. -lwrap "-Wl,-rpath,$PWD"
gcc -o stores stores.c -L. -lstored -lwrap "-Wl,-rpath,$PWD"
rm -f in said
mkfifo in said
./stores <in >said &
target=$!
started+=("$target")
exec 3>in 4<said
make_blocks 1
attach -o stored.cmt
make_blocks 10
kill -INT $tracer
ended 0 '^cmttrace: stored.cmt: [0-9]+ allocations by 1 thread, .*nothing was lost$'
[ "$(blocks_in stored.cmt)" = 10 ] || complain "a stored function: $(blocks_in stored.cmt) blocks of 10"
stop

exit $failed
