# Logs that the installed mtrace, valgrind, ltrace and heaptrack write are read as the stored samples are. Addresses, stacks,
# times, pids and the order of threads differ from run to run, and libraries allocate for themselves. So the test compares
# sorted calls and sizes.

calls() {
  grep -v '^#\|^sample' | sed -E 's/[0-9a-f]*<[0-9]+>/B/g; s/ thread=.*//; s/ time=.*//; s/ stack=.*//' |
    grep -vE '\((72704|(17, 16)|272|288|320)\)' | sort | uniq -c
}

failed=0
"$SOURCE/tests/logs/record" again >names
[ -s names ] || { echo "skipped: none of mtrace, valgrind, ltrace and heaptrack is here"; exit 77; }
while read -r name; do
  trace2cmt -s "again/$name.log" 2>err | calls >new
  calls <"$SOURCE/tests/logs/samples/$name.text" >old
  if [ "$name" = ltrace ]; then
    # With several threads, ltrace sometimes misses a call, so these logs are not compared. A call that it has is there.
    grep -q 'malloc(' again/ltrace.log || { echo "wrong: ltrace has no malloc" >&2; failed=1; }
    for call in 'calloc(3, 8) = B' 'aligned_alloc(32, 96) = B' 'reallocarray(B, 5, 16) = B' 'valloc(100) = B'; do
      grep -qE "(>|<\.\.\. )${call%%(*}[( ]" again/ltrace.log || continue
      grep -qF "$call" new || { echo "wrong: $name has no $call" >&2; failed=1; }
    done
    continue
  fi
  diff old new >&2 || { echo "wrong: $name: $(cat err)" >&2; failed=1; }
  ! grep ': expected' err >&2 || { echo "wrong: $name" >&2; failed=1; }
done <names
exit $failed
