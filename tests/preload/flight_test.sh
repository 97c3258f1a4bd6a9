# Recordings that keep the last events only: what is written is a slice of what a whole recording has.

. "$SOURCE/tests/waiting.sh"
kept=$BUILD/tests/preload/kept
failed=0
complain() { echo "$*" >&2; failed=1; }
unset CMTTRACE_STACKS  # what is compared below is recorded with and without
export CMTTRACE_TOUCHED=off

# Without what differs between two runs: addresses, times, and the header.
plain() { trace2cmt --to=text "$1" | grep -v '^#cmt' | sed -E 's/[0-9a-f]+</</g; s/ (time|address|begin|end|bias|loaded)=[0-9a-f]+//g'; }
# first FILE: how many events of the recording come before it
first() { trace2cmt --info "$1" | sed -n 's/^ *slice *\([0-9]*\):$/\1/p'; }
# compare KEPT WHOLE: whether it is whole, and that slice of the other
compare() {
  trace2cmt --verify "$1" >said || complain "$1: $(cat said)"
  local from; from=$(first "$1")
  [ "${from:-0}" -gt 0 ] || { complain "$1: nothing was dropped"; return; }
  trace2cmt --slice="$from:" -o sliced.cmt "$2"
  plain sliced.cmt >expected; plain "$1" >got
  cmp -s expected got || complain "$1: not the slice $from: of $2: $(diff expected got | head -n 5)"
}

for with in '' CMTTRACE_STACKS=1 'CMTTRACE_STACKS_OF_FREES=1 CMTTRACE_USABLE=1'; do
  rm -f ./*.cmt
  env $with CMTTRACE_OUT=all.cmt LD_PRELOAD=$TRACER "$kept" 120000 1
  env $with CMTTRACE_OUT=end.cmt CMTTRACE_KEEP=64K LD_PRELOAD=$TRACER "$kept" 120000 1
  compare end.cmt all.cmt
  [ -z "$with" ] || [ "$(grep -c ' stack=[1-9]' got)" -gt 1000 ] || complain "$with: no stacks"
  # As the last of it is asked for: so much, and the blocks that were live.
  [ "$(stat -c %s end.cmt)" -lt 400000 ] || complain "$with: $(stat -c %s end.cmt) bytes"
done
trace2cmt --info end.cmt | grep -Eq '^  kept +the last [0-9.]+ [mun]?s of [0-9.]+ [mun]?s$' || complain "no word of it: $(trace2cmt --info end.cmt)"

# A recording that fits is kept whole, and is no slice.
CMTTRACE_OUT=end.cmt CMTTRACE_KEEP=1h,1G LD_PRELOAD=$TRACER "$kept" 120000 1
! trace2cmt --info end.2.cmt | grep -Eq '^  (slice|kept) ' || complain "an hour: $(trace2cmt --info end.2.cmt)"
[ "$(trace2cmt --to=text end.2.cmt | grep -cv '^#')" = "$(trace2cmt --to=text all.cmt | grep -cv '^#')" ] || complain "an hour: not all"

# Asked for while the program goes on: by the FIFO, by a signal; and its end, which is a kill.
CMTTRACE_OUT=all2.cmt LD_PRELOAD=$TRACER "$kept" 160000 1
mkfifo in out
cmttrace --calls -o run.cmt --keep=64K --control=fifo --touched=off -- "$kept" 160000 4 kill <in >out 2>said &
launcher=$!
exec 3>in 4<out
read -r line <&4
until_true 'test -p fifo'
echo keep >fifo
until_true 'grep -q "in run.kept.1.cmt: [0-9,]* bytes" said'
trace2cmt --to=text run.kept.1.cmt | grep '^#cmt kept=[0-9]*ns:[0-9]*ns$' >/dev/null || complain "the program goes on, and its kept file has no kept="
echo >&3; read -r line <&4
kill -USR1 $launcher
until_true 'grep -q "in run.kept.2.cmt: [0-9,]* bytes" said'
[ "$(stat -c %s run.cmt)" = 0 ] || complain 'the trace has begun before the end'
echo >&3; read -r line <&4
echo flush >fifo
until_true 'grep -q "in run.kept.3.cmt: [0-9,]* bytes" said'
echo >&3
status=0
wait $launcher || status=$?
[ $status = 137 ] || complain "a killed program: exit $status"
grep -Eq 'run.cmt: .*; ended by SIGKILL; the last .* are kept, and not the [0-9,]+ events before$' said || complain "the last line: $(cat said)"
trace2cmt --to=text run.cmt | grep -v '^#' | tail -n 1 | grep -q '^mark("ended by SIGKILL")' || complain 'no mark of the kill'
before=0
for n in 1 2 3; do
  file=run.kept.$n.cmt
  trace2cmt --verify $file >said || complain "$file: $(cat said)"
  trace2cmt --slice="$(first $file):" -o sliced.cmt all2.cmt
  plain sliced.cmt >expected; plain $file >got
  # A whole recording goes on after it, and its last event before a pause is not the same to the thread.
  head -n "$(wc -l <got)" expected | cmp -s - got || complain "$file: $(head -n "$(wc -l <got)" expected | diff - got | head -n 5)"
  [ "$(first $file)" -gt $before ] || complain "$file begins at $(first $file), not behind $before"
  before=$(first $file)
done
trace2cmt --verify run.cmt >said || complain "run.cmt: $(cat said)"
trace2cmt --slice="$(first run.cmt):" -o sliced.cmt all2.cmt
plain run.cmt | grep -v '^mark("ended by' >got
plain sliced.cmt | head -n "$(wc -l <got)" | cmp -s - got || complain 'run.cmt is no slice'

# A program that waits for its trace, and aborts: it is whole.
status=0
CMTTRACE_WAIT=1 CMTTRACE_OUT=abort.cmt CMTTRACE_KEEP=64K LD_PRELOAD=$TRACER "$kept" 120000 1 abort || status=$?
[ $status = 134 ] && trace2cmt --verify abort.cmt >said || complain "abort: $status, $(cat said)"
[ "$(first abort.cmt)" -gt 0 ] || complain 'abort: nothing was dropped'

# The collector is killed: the program goes on, with one line.
CMTTRACE_OUT=lost.cmt CMTTRACE_KEEP=64K LD_PRELOAD=$TRACER "$kept" 120000 2 <in >out 2>err &
exec 3>in 4<out
read -r line <&4
perl -I"$SOURCE/tests/preload/checks" -Mcollector -e 'kill KILL => collector("lost.cmt")'
echo >&3
wait $! || complain "without a collector: exit $?"
[ "$(wc -l <err)" = 1 ] && grep -q '^libcmttrace: ' err || complain "without a collector: $(cat err)"

# A disk that is full for a while: a file that is asked for meanwhile cannot be written, and nothing that is kept is lost.
full_disk() {
  mount -t tmpfs -o size=8m none small
  cmttrace --calls -o small/full.cmt --keep=1h,1G --control=fifo --touched=off -- "$kept" 400000 3 <in >out 2>said &
  local launcher=$!
  exec 3>in 4<out
  read -r line <&4
  until_true 'test -p fifo'
  dd if=/dev/zero of=small/fill bs=1k 2>/dev/null || true
  for turn in 1 2; do
    echo keep >fifo
    until_true "[ \$(grep -c 'what is kept cannot be written: No space left on device' said) = $turn ]"
    [ $turn = 2 ] || { echo >&3; read -r line <&4; }
  done
  rm small/fill
  echo keep >fifo
  until_true 'grep -q "in small/full.kept.1.cmt: [0-9,]* bytes" said'
  echo >&3
  wait $launcher
  cp small/full.cmt small/full.kept.1.cmt .
}
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
  mkdir small
  export -f full_disk until_true
  kept=$kept unshare -m bash -euE -o pipefail -c full_disk || complain "a full disk: exit $?, $(cat said)"
  grep -q '; nothing was lost$' said || complain "a full disk: $(cat said)"
  CMTTRACE_OUT=all3.cmt LD_PRELOAD=$TRACER "$kept" 400000 1
  plain all3.cmt >expected
  for file in full.cmt full.kept.1.cmt; do
    trace2cmt --verify $file >verified || complain "$file: $(cat verified)"
    plain $file >got
    head -n "$(wc -l <got)" expected | cmp -s - got || complain "$file is not what was recorded"
  done
else
  echo 'skipped: a full disk, which needs root to mount one'
fi

# Settings that exclude each other, and values that are refused.
refused() {  # refused TEXT OPTION...
  status=0
  cmttrace "${@:2}" -- true 2>err || status=$?
  [ $status = 125 ] || [ $status = 2 ] || complain "${*:2}: exit $status"
  [ "$(head -n 1 err)" = "cmttrace: $1" ] || complain "${*:2}: $(cat err)"
}
refused "--keep: expected a time from 1s on, a size from 64K on, or both as in 10min,1G, not '5'" --keep=5
refused "--keep: expected a time from 1s on, a size from 64K on, or both as in 10min,1G, not '1s,2s'" --keep=1s,2s
refused "--keep: expected a time from 1s on, a size from 64K on, or both as in 10min,1G, not '1K'" --keep=1K
refused '--keep needs one output, in the compact form: -o NAME.cmt' --keep=1s -o app.trace
refused '--keep needs one output, in the compact form: -o NAME.cmt' --keep=1s -o a.cmt,b.cmt
refused '--keep and --rings do not go together' --keep=1s --rings=file
refused '--keep and --max-bytes do not go together' --keep=1s --max-bytes=1G
untraced() {  # untraced TEXT VARIABLE...
  env "${@:2}" LD_PRELOAD=$TRACER true 2>err || complain "${*:2}: exit $?"
  [ "$(cat err)" = "libcmttrace: $1; the program goes on untraced" ] || complain "${*:2}: $(cat err)"
}
untraced "CMTTRACE_KEEP cannot be '10'" CMTTRACE_KEEP=10 CMTTRACE_OUT=a.cmt
untraced 'CMTTRACE_KEEP needs CMTTRACE_OUT to be one path that ends in .cmt' CMTTRACE_KEEP=1s
untraced 'CMTTRACE_KEEP cannot go with CMTTRACE_RINGS' CMTTRACE_KEEP=1s CMTTRACE_OUT=a.cmt CMTTRACE_RINGS=r
untraced 'CMTTRACE_KEEP cannot go with CMTTRACE_MAX_BYTES' CMTTRACE_KEEP=1s CMTTRACE_OUT=a.cmt CMTTRACE_MAX_BYTES=1M
[ "$failed" = 0 ]
