# The command line of every tool: --help, --version, and the message for wrong use.

failed=0
export CMT_CORPUS=$PWD/none  # else cmtreplay --suite would replay it for minutes
complain() { echo "$tool: $*" >&2; failed=1; }

# run ARGUMENT...: leaves `status`, and the files out and err.
run() { status=0; "$tool" "$@" </dev/null >out 2>err || status=$?; }

version=$(sed -n 's/^Version: //p' "$BUILD/cmt.pc")
for tool in trace2cmt cmtreplay lifetimes overhead cmtreport; do
  for option in -h --help; do
    run $option
    [ "$status" = 0 ] && [ -s out ] && [ ! -s err ] || complain "$option: not on standard output with exit 0"
  done
  cp out help
  grep -q "^Usage: $tool " help || complain "--help does not say how to call it"

  run --version
  [ "$status" = 0 ] && [ "$(cat out)" = "$tool $version" ] || complain "--version: $(cat out err)"

  run --nonsense=x
  cp err unknown
  [ "$status" = 2 ] && [ ! -s out ] || complain "an unknown option: exit $status"
  [ "$(wc -l <unknown)" = 2 ] || complain "an unknown option: not one line and where to look: $(cat unknown)"
  head -n 1 unknown | grep -q "^$tool: .*--nonsense" || complain "an unknown option is not named: $(cat unknown)"
  [ "$(tail -n 1 unknown)" = "Try '$tool --help' for more information." ] || complain "$(cat unknown)"

  # Every option of --help is parsed, with a value or without: no message calls it unknown.
  for option in $(grep -oE -- '--[a-z][a-z0-9-]+' help | sort -u); do
    run "$option=x"
    cp err with
    run "$option"
    { sed "s/--nonsense/$option/g" unknown | cmp -s - with; } &&
      { sed "s/--nonsense=x/$option/g" unknown | cmp -s - err; } && complain "$option is in --help and unknown"
  done

  run no-such-file
  [ "$status" = 1 ] && [ "$(cat err)" = "$tool: no-such-file: No such file or directory" ] ||
    complain "a file that is not there: exit $status, $(cat err)"

  # Output that cannot be written is a failure, and said.
  printf 'malloc(8) = 1000<1>\nfree(1000<1>)\n' >two.trace
  status=0 once=
  [ "$tool" != cmtreplay ] || once=--runs=1
  "$tool" $once two.trace >/dev/full 2>err || status=$?
  [ "$status" = 1 ] && grep -q "^$tool: .*No space left on device" err || complain "a full disk: exit $status, $(cat err)"
done
exit $failed
