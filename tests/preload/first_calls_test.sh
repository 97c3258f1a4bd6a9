# The first call of a thread, of a forked child, and of a thread that is attached to is one event, whatever it calls. The
# program counts for itself: it prints the event of each.

. "$SOURCE/tests/behaviours.sh"
. "$SOURCE/tests/waiting.sh"
calls=$BUILD/tests/preload/first_calls

# events_of TRACE: a line for each thread but the first: all its events, in order, without those of NULL that the C library
# frees when a thread ends.
events_of() {
  trace2cmt --to=text "$1" | grep -vE '^(#|thread_|resident)' | sed -E 's/[0-9a-f]+<[0-9]+>/B/g' |
    awk '/ thread=/ { t = $0; sub(/.* thread=/, "", t); sub(/ thread=.*/, ""); if (!(t in all)) order[++n] = t
                      all[t] = all[t] (all[t] == "" ? "" : "; ") $0 }
         END { for (i = 1; i <= n; i++) { sub(/(; free\(0\))+$/, "", all[order[i]]); print all[order[i]] } }'
}
whole() { trace2cmt --verify "$1" >verified 2>&1 && ! trace2cmt --to=text "$1" | grep '^#cmt repairs' || complain "$1: $(cat verified)"; }

threads() {
  CMTTRACE_OUT=threads.cmt LD_PRELOAD=$TRACER "$calls" threads >expected
  whole threads.cmt
  events_of threads.cmt | diff expected - || complain 'threads do not have the events expected (<)'
}

children() {
  mkdir children
  CMTTRACE_OUT=children/%p.cmt LD_PRELOAD=$TRACER "$calls" children >expected
  while read -r process event; do
    whole "children/$process.cmt"
    found=$(trace2cmt --to=text "children/$process.cmt" | grep -vE '^(#|thread_|resident)' | sed -E 's/[0-9a-f]+<[0-9]+>/B/g')
    [ "$found" = "$event" ] || complain "a child has '$found', not '$event'"
  done <expected
}

# Their threads have a block of pthread_setspecific(3) besides, whose making and end are the program's.
attached() {
  rm -f in said
  mkfifo in said
  "$calls" attached <in >said &
  target=$!
  exec 3>in 4<said
  read -r ready <&4
  [ "$ready" = ready ] || complain "the program says '$ready'"
  cmttrace --calls --attach="$target" -o attached.cmt >out 2>err </dev/null 3>&- 4<&- &
  tracer=$!
  until_true 'grep -q "records process" err || ! kill -0 $tracer'
  if grep -E 'ptrace_scope|CAP_SYS_PTRACE' err >refusal; then
    kill -KILL "$target"
    echo "skipped: $(cat refusal)"
    return 0
  fi
  echo go >&3
  sed 's/.*/calloc(32, 16) = B; &; free(B)/' <&4 >expected
  wait "$target"
  wait "$tracer" || true
  whole attached.cmt
  trace2cmt --to=text attached.cmt | grep -vE '^#|thread_|calloc' >events  # to its end: no command may see a closed pipe
  [[ $(sed -n 1p events) == 'operator delete('* ]] || complain "the first event is $(sed -n 1p events)"
  events_of attached.cmt | diff expected - || complain 'threads do not have the events expected (<)'
}

behaviour 'the first call of a thread is one event' threads
behaviour 'the first call of a child is one event' children
behaviour 'the first call of each thread that is attached to is one event' attached
exit $failed
