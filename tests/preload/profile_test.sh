# Profiles for pprof, written while a program runs and at its end: sums, names, their number, and what happens when they cannot be written.

. "$SOURCE/tests/waiting.sh"
kept=$BUILD/tests/preload/kept
failed=0
complain() { echo "$*" >&2; failed=1; }
pprof() { /usr/bin/python3 "$SOURCE/tests/analysis/read_pprof.py" "$@"; }
values() { pprof "$1" | sed -nE 's/^sample: ([0-9]+ [0-9]+ [0-9]+ [0-9]+) .*/\1/p' | sort; }
export CMTTRACE_TOUCHED=off
unset CMTTRACE_STATUS
mkfifo in out

# Each request gives one file. The last one, at the end, has the sums of lifetimes, stack by stack.
cmttrace -o all.cmt --pprof=p.pb.gz --pprof-files=2 --control=fifo -- "$kept" 40000 4 <in >out 2>said &
launcher=$!
exec 3>in 4<out
read -r line <&4
until_true 'test -p fifo'
echo profile >fifo
until_true 'test -f p.0001.pb.gz'
[ "$(stat -c %a p.0001.pb.gz)" = 600 ] || complain "mode $(stat -c %a p.0001.pb.gz)"
cp p.0001.pb.gz first.pb.gz
echo >&3; read -r line <&4
kill -USR1 $launcher
until_true 'test -f p.0002.pb.gz'
echo >&3; read -r line <&4
echo profile >fifo
until_true 'test -f p.0003.pb.gz && ! test -e p.0001.pb.gz'
echo >&3
wait $launcher || complain "exit $?: $(cat said)"
[ "$(echo p.*)" = 'p.0002.pb.gz p.0003.pb.gz p.pb.gz' ] || complain "files: $(echo p.*)"
lifetimes --pprof=whole.pb.gz all.cmt || failed=1
[ "$(pprof --totals p.pb.gz)" = "$(pprof --totals whole.pb.gz | cut -d' ' -f1-4)" ] ||
  complain "sums: $(pprof --totals p.pb.gz), not $(pprof --totals whole.pb.gz)"
values p.pb.gz >got
values whole.pb.gz >expected
cmp -s got expected && [ "$(wc -l <got)" -gt 10 ] || complain "samples: $(diff got expected | head -n 5)"
before=0
for file in first p.0003 p; do
  made=$(pprof --totals "$file.pb.gz" | cut -d' ' -f1)
  [ "$made" -gt $before ] || complain "$file: $made blocks after $before"
  before=$made
done
pprof p.pb.gz >text
for line in 'types: alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes' 'default: inuse_space' \
  'period: space/bytes 1' 'comment: sampling_interval=0' 'comment: events_dropped=0' 'comment: stacks_joined=0'; do
  grep -qxF "$line" text || complain "no line '$line': $(grep -v '^[lms]' text)"
done
grep -qE '^mapping 1: .*/kept id=[0-9a-f]{8,} ----$' text || complain "mappings: $(grep ^mapping text)"

# Its moment is between the command's start and its end.
begin_ns=$(date +%s%N)
cmttrace -o now.cmt --pprof=now.pb.gz -- "$kept" 1 1 </dev/null >/dev/null 2>&1
moment_ns=$(pprof now.pb.gz | sed -n 's/^time: \([0-9]*\) .*/\1/p')
[ "$moment_ns" -ge "$begin_ns" ] && [ "$moment_ns" -le "$(date +%s%N)" ] || complain "moment $moment_ns, began $begin_ns"

# A mapping is that of the code, from which the viewer finds addresses in the file.
if command -v readelf >/dev/null; then
  size=$(sed -nE 's/^mapping 1: ([0-9a-f]+)-([0-9a-f]+) .*/\1 \2/p' text | { read -r begin end; echo $((0x$end - 0x$begin)); })
  wanted=$(readelf -lW "$kept" | sed -nE 's/^ *LOAD +0x([0-9a-f]+) +0x[0-9a-f]+ +0x[0-9a-f]+ +0x[0-9a-f]+ +0x([0-9a-f]+) +R E .*/\1 \2/p' | { read -r offset bytes; echo $((0x$offset % 4096 + 0x$bytes)); })
  [ "$size" = "$wanted" ] || complain "the program's code has $wanted bytes, its mapping $size"
fi

# By time: who looks sees whole files only. An earlier run's files count for the bound; the file of its end is replaced.
touch p.0004.pb.gz.part
cmttrace -o all.cmt --pprof=p.pb.gz --pprof-every=1ms --pprof-files=3 -- "$kept" 1000 2 <in >out 2>said &
launcher=$!
exec 3>in 4<out
read -r line <&4
/usr/bin/python3 - <<'END' || complain 'a file was not whole'
import glob, gzip, time
seen, deadline = set(), time.time() + 60
while len(seen) < 4:
    assert time.time() < deadline, "no files"
    for name in set(glob.glob("p.*.pb.gz")) - seen:
        try:
            with gzip.open(name) as file:
                file.read()
            seen.add(name)
        except FileNotFoundError:  # it was the oldest
            pass
END
echo >&3
wait $launcher || complain "exit $?: $(cat said)"
[ "$(ls p.*.part 2>/dev/null | wc -l)" = 0 ] && [ "$(ls p.[0-9]*.pb.gz | wc -l)" = 3 ] && [ ! -e p.0001.pb.gz ] && [ ! -e p.2.pb.gz ] && [ -f p.pb.gz ] || complain "files: $(echo p.*)"

# A file that cannot be written is reported once, and tried again. The recording goes on, and nothing half written stays.
mkdir full.0001.pb.gz.part
cmttrace -o all.cmt --pprof=full.pb.gz --control=fifo -- "$kept" 200000 4 <in >out 2>said &
launcher=$!
exec 3>in 4<out
read -r line <&4
echo profile >fifo
until_true 'echo profile >fifo; echo flush >fifo; sleep 0.1; test -s all.cmt'
echo >&3; read -r line <&4
until_true 'grep -q "^libcmttrace: cannot write the profile .*/full.0001.pb.gz: Is a directory$" said'
rmdir full.0001.pb.gz.part
echo profile >fifo
until_true 'test -f full.0001.pb.gz'
echo >&3; read -r line <&4
echo >&3
wait $launcher || complain "exit $?: $(cat said)"
[ "$(grep -c 'cannot write' said)" = 1 ] && grep -q 'nothing was lost$' said || complain "a fault: $(cat said)"
[ "$(echo full.*)" = 'full.0001.pb.gz full.pb.gz' ] || complain "files: $(echo full.*)"

mkdir end.pb.gz.part
cmttrace -o all.cmt --pprof=end.pb.gz -- "$kept" 100 1 2>said && complain "the profile cannot be written: exit 0" || [ $? = 125 ] || failed=1
grep -qx 'cmttrace: all.cmt: its profile cannot be written: Is a directory' said && [ ! -e end.pb.gz ] || complain "at the end: $(cat said)"
cmttrace -o /dev/null --pprof=end.pb.gz -- "$kept" 100 1 2>said && complain "no profile and no trace: exit 0" || [ $? = 125 ] || failed=1
grep -qx 'cmttrace: end.pb.gz cannot be written: Is a directory' said || complain "no trace: $(cat said)"

# Without a launcher an existing file stays. Each process has its own files.
for n in 1 2; do
  CMTTRACE_OUT=own.%p.trace CMTTRACE_STACKS=1 CMTTRACE_WAIT=1 CMTTRACE_PPROF=own.pb.gz LD_PRELOAD=$TRACER "$kept" 100 1 || failed=1
done
[ "$(echo own*.gz)" = 'own.2.pb.gz own.pb.gz' ] || complain "names: $(echo own*)"
CMTTRACE_OUT=c.%p.trace CMTTRACE_WAIT=1 CMTTRACE_PPROF=c.%p.pb.gz LD_PRELOAD=$TRACER sh -c "'$kept' 100 1; '$kept' 200 1; true"
[ "$(ls c.*.pb.gz | wc -l)" = "$(ls c.*.trace | wc -l)" ] && [ "$(ls c.*.pb.gz | wc -l)" -ge 2 ] || complain "children: $(echo c.*)"

# Without a trace.
CMTTRACE_OUT=/dev/null CMTTRACE_STACKS=1 CMTTRACE_WAIT=1 CMTTRACE_PPROF=v.%p.pb.gz LD_PRELOAD=$TRACER "$kept" 1000 1 || failed=1
cmttrace -o /dev/null --pprof=w.pb.gz -- "$kept" 1000 1 2>said || complain "no trace: exit $?"
[ "$(pprof --totals w.pb.gz)" = "$(pprof --totals v.*.pb.gz)" ] && grep -qE '^cmttrace: w.pb.gz: [0-9,]+ events of 1 thread; .*; nothing was lost$' said ||
  complain "no trace: $(cat said)"
[ "$(echo [vw].*)" = "$(echo v.*.pb.gz) w.pb.gz" ] || complain "no trace, but $(echo [vw].*)"

# Refused before the program runs.
for wrong in --pprof-every=1s '--pprof-files=2' '--pprof=p.pb.gz --pprof-files=0' '--pprof=p.pb.gz --pprof-every=x' '--pprof=none/p.pb.gz' \
  '-o /dev/null --pprof=p.pb.gz --keep=1M' '-o /dev/null --pprof=p.pb.gz --rings=r' '-o /dev/null --pprof=p.pb.gz --max-bytes=1M' '-o /dev/null'; do
  ! cmttrace $wrong -- touch ran 2>said && [ "$(grep -c '^cmttrace: ' said)" = 1 ] && [ ! -e ran ] || complain "$wrong: $(cat said)"
done
CMTTRACE_PPROF_EVERY=1s LD_PRELOAD=$TRACER "$kept" 100 1 2>said
[ "$(cat said)" = 'libcmttrace: CMTTRACE_PPROF_EVERY needs CMTTRACE_PPROF; the program goes on untraced' ] || complain "the variable alone: $(cat said)"
CMTTRACE_PPROF_FILES=3 LD_PRELOAD=$TRACER "$kept" 100 1 2>said
[ "$(cat said)" = 'libcmttrace: CMTTRACE_PPROF_FILES needs CMTTRACE_PPROF; the program goes on untraced' ] || complain "the number of files alone: $(cat said)"
exit $failed
