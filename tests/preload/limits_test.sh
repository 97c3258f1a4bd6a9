# Where the trace cannot be continued, the program goes on as if nothing had happened, and one line says so. The trace can be
# read to that point, and is marked as truncated.

programs=$BUILD/tests/preload
failed=0
complain() { echo "$what: $*" >&2; failed=1; }
# events FILE: how many it has, and in `end` how it ends
events() { trace2cmt --to=text "$1" >text 2>said; end=$(tail -n 1 text); grep -vc '^#' text || true; }
count() { events "$1" >number; number=$(cat number); }
# went_on: the program did, with one line, beside the one that says that a limit leaves no room for call stacks
went_on() {
  [ "$(wc -l <err)" = 1 ] || sed -i '/no room for the table of call stacks; the program is recorded without stacks$/d' err
  [ "$status" = 5 ] && [ "$(cat out)" = $'half\nhalf' ] || complain "the program did not go on: $status, $(cat out)"
  [ "$(wc -l <err)" = 1 ] && grep -q "^libcmttrace: " err || complain "not one line: $(cat err)"
}
# steady FILE BLOCKS: the program that is to go on
steady() { status=0; echo | LD_PRELOAD=$TRACER CMTTRACE_OUT=$1 "$programs/faults" steady "$2" >out 2>err || status=$?; }

what='a limit on file sizes'
(ulimit -f 1500; steady limit.trace 60000; echo $status >status)
status=$(cat status)
went_on
grep -q "limit on file sizes.*$PWD/limit.trace: File too large" err || complain "$(cat err)"
count limit.trace
[ "$number" -gt 10000 ] && [ "$end" = '#cmt end=truncated' ] || complain "$number events, $end"

# A small disk of its own, if this may mount one.
if unshare -m true 2>/dev/null; then
  mkdir disk readonly root
  export -f steady
  export status programs
  for form in trace cmt; do
    what="a full disk ($form)"
    unshare -m bash -c "mount -t tmpfs -o size=1m none disk && steady disk/t.$form 600000; echo \$status >status; cp disk/t.$form full.$form"
    status=$(cat status)
    went_on
    count full.$form
    [ "$number" -gt 10000 ] && [ "$number" -lt 2000000 ] && [ "$end" = '#cmt end=truncated' ] || complain "$number events, $end"

    what="a read-only folder ($form)"
    unshare -m bash -c "mount --bind -o ro readonly readonly && steady readonly/t.$form 100; echo \$status >status"
    status=$(cat status)
    went_on
    [ -z "$(ls readonly)" ] || complain "it was written to"

    what="chroot ($form)"
    LD_PRELOAD=$TRACER CMTTRACE_OUT=root.$form "$programs/faults" chroot root || complain "exit $?"
    count root.$form
    [ "$(grep -c '^malloc(37000)' text)" = 1000 ] && [ "$end" = '#cmt end=complete' ] || complain "$number events, $end"
  done
else
  echo 'not tested: a full disk, a read-only folder, chroot: that needs root'
fi

# untraced TEXT COMMAND...: the program goes on with one line, as do its descriptors.
untraced() {
  status=0
  rm -f not.cmt
  CMTTRACE_OUT=not.cmt LD_PRELOAD=$TRACER "${@:2}" >out 2>err || status=$?
  [ "$status" = 5 ] && [ "$(cat err)" = "libcmttrace: $1" ] || complain "$status: $(cat err)"
  [ ! -e not.cmt ] || [ "$2" = valgrind ] || complain 'a file without a trace'
  ! grep memfd out || complain 'a descriptor stays open'
}
what='few descriptors'
(ulimit -n 20; untraced 'cannot start the collector: Too many open files; the program goes on untraced' \
  perl -e 'print readlink, "\n" for glob "/proc/self/fd/*"; exit 5'; exit $failed) || failed=1
what='hardly any address space'
(ulimit -v 15000; untraced 'the limit on address space leaves no room for the collector; the program goes on untraced' \
  perl -e 'print readlink, "\n" for glob "/proc/self/fd/*"; exit 5'; exit $failed) || failed=1
what='hardly any data'
(ulimit -d 600; untraced 'cannot make the rings: Cannot allocate memory; the program goes on untraced' \
  sh -c 'exit 5'; exit $failed) || failed=1
what='valgrind'
if command -v valgrind >/dev/null; then
  untraced 'valgrind runs the program, and cannot start the collector; the program goes on untraced' \
    valgrind -q --tool=none perl -e 'exit 5'
else
  echo 'skipped: valgrind is not installed'
fi

# Little address space: recorded, or said not to be.
for form in trace cmt; do
  for kilobytes in 18000 20000 30000 60000 200000; do
    what="$kilobytes KiB of address space ($form)"
    (ulimit -v $kilobytes; steady space.$kilobytes.$form 20000; echo $status >status)
    status=$(cat status)
    if [ -s err ]; then
      went_on
    else
      [ "$status" = 5 ] || complain "exit $status"
      count space.$kilobytes.$form
      [ "$number" -gt 70000 ] && [ "$end" = '#cmt end=complete' ] || complain "$number events, $end"
    fi
  done
done

# The collector is killed half way.
what='no collector'
mkfifo in
LD_PRELOAD=$TRACER CMTTRACE_OUT=t.cmt "$programs/faults" steady 400000 <in >out 2>err &
exec 3>in
until grep -q half out; do sleep 0.01; done
perl -I"$SOURCE/tests/preload/checks" -Mcollector -e 'kill KILL => collector("t.cmt")'
status=0
echo >&3
wait $! || status=$?
went_on
[ "$failed" = 0 ]
