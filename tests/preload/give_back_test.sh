# malloc_trim, mallopt and jemalloc's mallctl are recorded, and a program finds a mallctl only where there is one.

failed=0
complain() { echo "give_back ($allocator): $*: $(cat out calls)" >&2; failed=1; }
jemalloc=$(/sbin/ldconfig -p | sed -n '/x86-64/s/.*libjemalloc\.so\.2.* => //p' | head -1)
libc='mallopt("M_MMAP_THRESHOLD=131072") mallopt("M_ARENA_MAX=2") mallopt("M_MXFAST=64") malloc_trim(4096)'
controls='mallctl("background_thread=0") mallctl("arenas.dirty_decay_ms=5000") mallctl("arenas.muzzy_decay_ms=-1")'
controls="$controls mallctl(\"arena.4096.purge\") mallctl(\"arena.4096.decay\")"

for allocator in '' $jemalloc; do
  for program in give_back give_back_now; do
    env LD_PRELOAD="$allocator" "$BUILD/tests/preload/$program" >wanted
    rm -f t.trace
    env CMTTRACE_WAIT=1 LD_PRELOAD="$TRACER $allocator" CMTTRACE_OUT=t.trace "$BUILD/tests/preload/$program" >out 2>&1 ||
      complain "exit $?"
    grep -E '^mall(opt|ctl|oc_trim)\(' t.trace >calls
    cmp -s out wanted || complain "not what is printed without the tracer"
    [ "$(echo $(cat calls))" = "$libc${allocator:+ $controls}" ] || complain calls
  done
done
exit $failed
