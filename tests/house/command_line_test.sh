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
  [ "$(wc -L <help)" -le 80 ] || complain "--help has lines of $(wc -L <help) columns"

  for option in -V --version; do
    run $option
    [ "$status" = 0 ] && [ "$(cat out)" = "$tool $version" ] || complain "$option: $(cat out err)"
  done

  run --nonsense=x
  cp err unknown
  [ "$status" = 2 ] && [ ! -s out ] || complain "an unknown option: exit $status"
  [ "$(wc -l <unknown)" = 2 ] || complain "an unknown option: not one line and where to look: $(cat unknown)"
  head -n 1 unknown | grep -q "^$tool: .*--nonsense" || complain "an unknown option is not named: $(cat unknown)"
  [ "$(tail -n 1 unknown)" = "Try '$tool --help' for more information." ] || complain "$(cat unknown)"

  run --hlep
  [ "$status" = 2 ] && grep -qx "$tool: unrecognised option '--hlep'; did you mean '--help'?" err || complain "--hlep: $(cat err)"

  # Empty standard input has no trace, and a terminal does not look like a tool that works.
  run
  [ "$status" = 1 ] && [ "$(cat err)" = "$tool: standard input: the trace is empty" ] || complain "empty input: $status, $(cat err)"
  script -qec "$tool | cat" /dev/null </dev/null >out 2>&1 || true
  grep -aq "$tool: waits for a trace from the terminal: give a FILE, or end with Ctrl-D" out || complain "a terminal: $(cat out)"

  grep -q -- --help-all help && { run --help-all; cat out >>help; [ "$(wc -L <help)" -le 80 ] || complain "--help-all is wide"; }

  # Every option of --help is parsed, with a value or without: no message calls it unknown.
  unknown=$(<unknown)
  for option in $(grep -oE -- '--[a-z][a-z0-9-]+' help | sort -u); do
    run "$option=x"
    [ "$(<err)" = "${unknown//--nonsense/$option}" ] || continue
    run "$option"
    [ "$(<err)" != "${unknown//--nonsense=x/$option}" ] || complain "$option is in --help and unknown"
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

# A launcher's own failures are 125, and a word of a list or a subcommand that is mistyped is answered with the closest.
refuses() {  # refuses STATUS MESSAGE TOOL ARGUMENT...
  local wanted=$1 message=$2; tool=$3; shift 3
  run "$@"
  [ "$status" = "$wanted" ] && [ "$(head -n 1 err)" = "$tool${message}" ] || complain "$*: exit $status, $(cat err)"
}
refuses 2 ": unknown command 'rnu'; did you mean 'run'?" cmtwatch rnu --watch
refuses 2 ": --clock: expected events, time or bytes, not 'evnts'; did you mean 'events'?" lifetimes --clock=evnts
refuses 2 ": --slice: expected FROM:TO, FROM not above TO, in events, with a unit as in 1.5s:2s, or by marks as in @load:@done or @load, not '5:1'" trace2cmt --slice=5:1
refuses 2 ": --touch: expected page, none, first or all, not 'pages'; did you mean 'page'?" cmtreplay --touch=pages
refuses 2 ": --timeout: expected a time of at least 1s, such as 2min, not '60'; its unit is missing" cmtreplay --timeout=60
refuses 2 " get: --interval: expected a time such as 10ms or 2s, not '100'; its unit is missing" cmtwatch get --interval=100 1
refuses 125 ": --max-time: expected a time such as 10ms, 1.5s or 2h, not '10'; its unit is missing" cmttrace --max-time=10 true

# The ending of -o is the form.
same() { cmp -s "$1" "$2" || complain "$1 differs from $2"; }
tool=lifetimes
lifetimes --json two.trace >wanted; lifetimes -o a.json two.trace; same a.json wanted
lifetimes --csv two.trace >wanted; lifetimes -o a.csv two.trace; same a.csv wanted
lifetimes two.trace >wanted; lifetimes -o a.txt two.trace; same a.txt wanted
lifetimes -o a.svg two.trace >out && grep -q '<svg' a.svg && [ ! -s out ] || complain "-o a.svg"
tool=overhead; overhead --json two.trace >wanted; overhead -o a.json two.trace; same a.json wanted
tool=cmtreport
cmtreport --json two.trace >wanted; cmtreport -o a.json two.trace; same a.json wanted
cmtreport two.trace >wanted; cmtreport -o a.txt two.trace; same a.txt wanted
tool=cmtreplay; cmtreplay --runs=1 -o a.json two.trace >out && grep -q '"schema": "cmt.replay/1"' a.json && [ ! -s out ] || complain "-o a.json"
tool=trace2cmt; trace2cmt -s two.trace >wanted; trace2cmt -o a.txt two.trace; same a.txt wanted
tool=cmtwatch; cmtwatch run -o a.json -- true && grep -q '"schema": "cmt.watch/1"' a.json || complain "-o a.json: $(cat a.json)"
tool=lifetimes; run -o two.trace two.trace
[ "$status" = 2 ] && [ -s two.trace ] || complain "-o replaces the trace: $status"

# A .cmt on a terminal is summarised. A text, a pipe and a file get annotated lines.
trace2cmt -o two.cmt two.trace
on_terminal() { NO_COLOR=1 script -qec "stty columns 80; $*" /dev/null </dev/null | tr -d '\r' >out; }
for tool in lifetimes overhead; do
  { echo "$tool: shows the summary; --annotate prints each event, as into a pipe or a file"; COLUMNS=80 $tool --summary two.cmt; } >wanted
  on_terminal $tool two.cmt; same out wanted
  $tool two.cmt >wanted
  for how in '--annotate two.cmt' '--totals two.cmt' 'two.trace' 'two.cmt | cat'; do
    on_terminal $tool $how
    grep -q '^free(1000<1>) *# ' out || complain "on a terminal $how: $(cat out)"
  done
done
exit $failed
