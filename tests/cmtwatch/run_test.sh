# cmtwatch run reports the peak of a command, which does not notice it.

. "$SOURCE/tests/cmtwatch/common.sh"

# The status and the signal are the command's; a command that could not start has its own status.
status_of cmtwatch run -- sh -c 'echo said; exit 7'
[ "$status" = 7 ] && [ "$(cat out)" = said ] && grep -q '^peak ' err || complain "exit 7: $status, $(cat out err)"
status_of cmtwatch run -- sh -c 'kill -KILL $$'
[ "$status" = 137 ] || complain "a killed command: $status"
status_of cmtwatch run ./nowhere
[ "$status" = 127 ] && grep -qx 'cmtwatch run: ./nowhere: No such file or directory' err || complain "127: $status $(cat err)"
: >no-program
status_of cmtwatch run ./no-program
[ "$status" = 126 ] || complain "126: $status"
status_of cmtwatch run
[ "$status" = 125 ] || complain "wrong use of a launcher: $status"

# The command's own options need no protection, and its streams are its own.
status_of cmtwatch run --only-peak --metric=rss sh -c 'cat; echo err >&2'
[ "$status" = 0 ] && head -n 1 err | grep -qx err || complain "options of the command: $(cat err)"
[ "$(echo through | cmtwatch run --no-peak cat)" = through ] || complain "standard input does not reach the command"
cmtwatch run --no-peak -O child.out -E child.err -- sh -c 'echo o; echo e >&2' || complain "-O -E: $?"
[ "$(cat child.out child.err)" = "o
e" ] || complain "-O and -E: $(cat child.out child.err)"

# A signal reaches the command.
rm -f up caught
cmtwatch run --no-peak -- sh -c 'trap "echo caught >caught; exit 3" TERM; echo up >up; while :; do sleep 0.01; done' &
watch=$!
until_true '[ -s up ]'
kill -TERM $watch
status=0; wait $watch || status=$?
[ "$status" = 3 ] && [ "$(cat caught)" = caught ] || complain "SIGTERM did not reach the command: $status"

# The peak is the command's: 64 MB that it holds while it waits for a sample.
hold='import mmap, os, sys
memory = mmap.mmap(-1, 64_000_000, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for at in range(0, 64_000_000, 4096): memory[at] = 1
while not os.path.exists(sys.argv[1]): pass'
# Descriptor 7 ends the lines where cmtwatch does not even open them.
check_peak() {  # check_peak METRIC: the peak's number is 64 MB and at most a small interpreter more
  local last=
  rm -f seen csv
  mkfifo csv
  cmtwatch run --metric="$1" --interval=5ms --csv -o csv -- /usr/bin/python3 -c "$hold" seen 7>csv &
  while IFS=, read -r begin end bytes processes refused; do
    [ "$begin" = begin_ns ] && continue
    [ -n "$bytes" ] && [ "$bytes" -ge 64000000 ] && touch seen && last=$bytes
  done <csv
  wait $! || complain "$1: the command failed"
  [ "${last:-0}" -ge 64000000 ] && [ "$last" -lt 100000000 ] || complain "$1: ${last:-nothing} bytes seen"
}
for metric in pss rss uss anon; do check_peak "$metric"; done

# The shortest command has a peak, and none of its parent's memory: a sample and the kernel's mark are taken at its end.
# Debuggers may be forbidden here.
if cmtwatch run --json -o traced.json -- true && jq -e .resident_bytes_mark traced.json >/dev/null; then
  /usr/bin/python3 -c 'import subprocess, sys
memory = bytearray(100 << 20)
for at in range(0, len(memory), 4096): memory[at] = 1
for run in range(10): subprocess.run(sys.argv[1:], check=True)' cmtwatch run --metric=rss --bytes --only-peak -- true 2>peaks
  [ "$(grep -cxE '[0-9]+' peaks)" = 10 ] && [ "$(sort -n peaks | tail -n 1)" -lt 20000000 ] && [ "$(sort -n peaks | head -n 1)" -gt 200000 ] ||
    complain "the peaks of true: $(cat peaks)"
  # Memory that came and went between two samples is in the kernel's mark.
  cmtwatch run --interval=1h --json -o burst.json -- /usr/bin/python3 -c 'del_me = bytearray(64_000_000); del del_me'
  jq -e '.peak_missed and .resident_bytes_mark > 64000000 and .peak.bytes < 64000000' burst.json >/dev/null || complain "a burst: $(cat burst.json)"
  cmtwatch record --interval=1h -o burst.db -- /usr/bin/python3 -c 'del_me = bytearray(64_000_000); del del_me' 2>err
  grep -qE '^cmtwatch record: between moments python3 \([0-9]+\) had up to [67][0-9.]+ MiB resident \(VmHWM\)$' err &&
    cmtwatch peak burst.db | grep -q '^between moments python3 ' || complain "a burst between moments: $(cat err)"
  cmtwatch compare burst.json burst.db >table && grep -c ' at least ' table | grep -qx 2 || complain "bursts compared: $(cat table)"
  cmtwatch record --interval=1h -o short.db -- true && cmtwatch peak short.db >out || complain "a recording of true: $(cat out err)"
else
  echo "skipped: ptrace(2) is forbidden: the end of a command"
fi

# A traced command is stopped, continued and killed as if it were not.
cmtwatch run --interval=1h -- sh -c 'kill -STOP $$; exit 5' 2>err &
watch=$!
until_true 'grep -qs "^State:.[Tt]" "/proc/$(cat /proc/$watch/task/$watch/children | tr -d " ")/status"'
kill -CONT "$(tr -d ' ' </proc/$watch/task/$watch/children)"
status=0; wait $watch || status=$?
[ "$status" = 5 ] || complain "a command that stops itself: $status $(cat err)"
status_of cmtwatch run -- sh -c 'trap "exit 6" USR1; kill -USR1 $$; sleep 100'
[ "$status" = 6 ] || complain "a command that signals itself: $status"

# LeakSanitizer, which attaches to its own process, finds it free.
echo 'int main(void) { return 3; }' >leaks.c
if cc -w -fsanitize=address -o leaks leaks.c 2>/dev/null && { ./leaks 2>/dev/null; [ $? = 3 ]; }; then
  for words in ./leaks 'env A=b ./leaks' 'sh -c ./leaks' 'sh -c exec\ ./leaks'; do
    eval "status_of cmtwatch run -- $words"
    [ "$status" = 3 ] && ! grep -q LeakSanitizer err && grep -q '^peak ' err || complain "$words: $status $(cat err)"
  done
else
  echo "skipped: the compiler has no AddressSanitizer: a program that attaches to itself"
fi

# Descendants count, orphans too: the middle process ends and leaves its child to us.
cat >family.sh <<'END'
( ( exec -a orphan sleep 1000 & echo $! >orphan.pid ) & )
until [ -s orphan.pid ]; do sleep 0.01; done
until [ -e seen ]; do sleep 0.01; done
kill "$(cat orphan.pid)"
END
rm -f seen csv orphan.pid
mkfifo csv
cmtwatch run -r -v --metric=rss --interval=5ms --csv -o csv -- bash family.sh 7>csv &
while IFS=, read -r begin end pid parent name bytes; do
  [ "$name" = sleep ] && [ -s orphan.pid ] && [ "$pid" = "$(cat orphan.pid)" ] && touch seen
done <csv
wait $! || complain "a family: $?"
[ -e seen ] || complain "an orphan was not seen"

# Between vfork and exec a child runs in its parent's memory, which counts once.
if made_vfork; then
  rm -f seen csv borrowed
  mkfifo csv
  cmtwatch run -r --metric=rss --interval=5ms --csv -o csv -- ./vfork 7>csv &
  left=5 most=0
  while IFS=, read -r begin end bytes processes refused; do
    [ -e borrowed ] && left=$((left - 1))
    [ "$left" = 0 ] && touch seen
    [ "${bytes%_bytes}" = "$bytes" ] && [ "${bytes:-0}" -gt "$most" ] && most=$bytes
  done <csv
  wait $! || complain "vfork: $?"
  [ "$most" -ge 64000000 ] && [ "$most" -lt 100000000 ] || complain "memory that is lent counts twice: $most"
else
  echo "skipped: kcmp(2) or a C compiler is missing: memory that is lent to a child"
fi

# A report that cannot be written never ends the command, but is a failure.
status_of cmtwatch run --json --interval=1ms -o /dev/full -- sh -c 'sleep 0.05; echo done >done'
[ "$status" = 125 ] && [ "$(cat done)" = done ] && grep -q 'No space left' err || complain "a full disk: $status $(cat err)"

# The result contains its cost and its interval.
cmtwatch run --json --interval=1ms --metric=vm -o run.json -- sleep 0.05
jq -e '.schema == "cmt.watch/1" and .command == ["sleep", "0.05"] and .ended.status == 0 and .cost_cpu_ns > 0 and
  .peak.bytes == ([.samples[].bytes] | max) and (.samples | all(.begin_ns <= .end_ns and (.wall_ns / 1e9 - now | fabs) < 600))' run.json >/dev/null ||
  complain "run.json: $(cat run.json)"

# The title of a picture is the command, in one line.
cmtwatch run --metric=rss --plot=named.svg -- sh -c 'true
exit' >out 2>err || complain "--plot: $? $(cat err)"
grep -q '>sh -c true exit<' named.svg || complain "the picture's title: $(head -c 500 named.svg)"
exit $failed
