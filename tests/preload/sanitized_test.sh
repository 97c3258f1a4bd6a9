# A program with a sanitizer runs as if the tracer were not there, however it was started, and that is reported.

. "$SOURCE/tests/behaviours.sh"

program=$SOURCE/tests/preload/programs/describes_itself.c
compilers=()
for compiler in gcc clang clang-14 clang-19; do command -v $compiler >/dev/null && compilers+=($compiler); done
built=()
build() {  # NAME COMPILER OPTION...: unless the compiler lacks the sanitizer, or the loader its library
  "${@:2}" -D_GNU_SOURCE -O0 "$program" -o "$1" 2>/dev/null || return 0
  local ran=0
  ./"$1" >/dev/null 2>&1 || ran=$?
  [ $ran != 0 ] && [ $ran != 3 ] || built+=("$1")
}
for compiler in "${compilers[@]:0:2}"; do
  build ${compiler%%-*}_address $compiler -fsanitize=address
  build ${compiler%%-*}_thread $compiler -fsanitize=thread
done
[ -z "${CMT_DAILY:-}" ] || build clang_memory clang -fsanitize=memory
[ -z "${CMT_DAILY:-}" ] || build clang_shared clang -fsanitize=address -shared-libasan
[ ${#built[@]} -gt 0 ] || { echo 'skipped: no compiler here has a sanitizer'; exit 77; }

# same COMMAND...: the same output and status as without us, and one line in the status file.
same() {
  status=0 traced_status=0
  : >status.lines
  env -u CMTTRACE_WAIT "$@" >out 2>err || status=$?
  env "LD_PRELOAD=$TRACER" "CMTTRACE_OUT=$PWD/t.%n.%p.cmt" "CMTTRACE_STATUS=-$PWD/status.lines" "$@" >out.traced 2>err.traced ||
    traced_status=$?
  diff out out.traced && diff err err.traced && [ $status = $traced_status ] || complain "$*: $traced_status, not $status"
  [ "$(grep -c 'not_recorded=sanitizer path=.' status.lines)" = 1 ] || complain "$*: reported: $(cat status.lines)"
}

by_name() {
  for name in "${built[@]}"; do
    same ./$name 'a word' '' 'x=y'
    same sh -c "exec ./$name in a shell"
  done
}

# A descriptor that exec closes, a script, a process whose signals are blocked, other preloaded libraries.
other_starts() {
  mkdir -p folder
  for name in ${built[0]}; do
    same perl -e 'exec {"./'$name'"} "another name", "word"'
    same perl -MPOSIX -e 'sigprocmask(SIG_BLOCK, POSIX::SigSet->new(SIGUSR1)); open F, "<", "/dev/null"; fcntl(F, 2, 0); exec "./'$name'"'
    same "$BUILD/tests/preload/describes_itself" by_descriptor ./$name word
    printf '#!%s an option\n' "$PWD/$name" >folder/script
    printf '#!%s\n' "$PWD/folder/script" >folder/outer
    chmod 755 folder/script folder/outer
    same folder/script word folder/script
    same folder/outer word
    same env PATH=folder script word
    same /lib64/ld-linux-x86-64.so.2 ./$name word
  done
}

# Without a status file a line on standard error says it; other entries of LD_PRELOAD stay.
by_hand() {
  name=${built[-1]}
  CMTTRACE_OUT=t.cmt LD_PRELOAD="libutil.so.1 $TRACER:libdl.so.2" ./$name >out 2>err && status=0 || status=$?
  [ $status = 3 ] && [ "$(cat err)" = "libcmttrace: ./$name is built with a sanitizer; it goes on untraced" ] || complain "by hand: $status $(cat err)"
  grep -qx 'LD_PRELOAD=libutil.so.1:libdl.so.2' out && ! grep -q CMTTRACE_ out || complain "by hand: $(cat out)"
  [ ! -e t.cmt ] || complain 'a trace was made'
}

behaviour "a program with a sanitizer runs as without the tracer" by_name
behaviour "so it does by a descriptor, as an interpreter and by the loader's name" other_starts
behaviour "a program with a sanitizer is reported on standard error if the tracer is loaded by hand" by_hand
exit $failed
