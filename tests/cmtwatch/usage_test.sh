# Checks the command line of each subcommand of cmtwatch.

. "$SOURCE/tests/cmtwatch/common.sh"
wrong() {  # wrong STATUS MESSAGE WORD...
  local want=$1 message=$2 status=0; shift 2
  cmtwatch "$@" >out 2>err </dev/null || status=$?
  [ "$status" = "$want" ] && [ ! -s out ] && grep -qF -- "$message" err && [ "$(wc -l <err)" = 2 ] ||
    complain "cmtwatch $*: exit $status, $(cat out err)"
}

wrong 2 "a command is missing"
wrong 2 "unknown command 'spy'" spy
wrong 2 "expected one PID" get
wrong 2 "expected one PID" wss
wrong 2 "the number of a process is missing" explain
wrong 2 "--stop does not go with --core" explain --core=x --stop
wrong 2 "--core has the file: no process can be named beside it" explain --core=x 1
wrong 2 "--count is for --watch" explain --count=2 1
wrong 2 "--method: expected idle or referenced, not 'magic'" wss --method=magic 1
wrong 2 "--kind: expected some of heap, anonymous, file and stack, not 'heap,brain'" wss --kind=heap,brain 1
wrong 2 "--permissions: expected some of r, w and x, not 'rws'" wss --permissions=rws 1
wrong 2 "--csv does not go with --json" wss --csv --json 1
wrong 2 "expected the number of a process, not 'x'" get x
wrong 2 "--metric: expected pss, rss, uss, anon, swap or vm, not 'all'" get --metric=all 1
wrong 2 "--interval: expected a time" get --interval=0 1
wrong 2 "--frequency does not go with --interval" get --interval=1s -f 1 1
wrong 2 "--frequency: expected a number above 0" get -f 0 1
wrong 2 "--max-cost: expected a number above 0" get --max-cost=x 1
wrong 2 "--csv does not go with --json" get --json --csv 1
wrong 2 "--plot: expected a name" get --plot=x.gif 1
wrong 2 "-o FILE is missing" record 1
wrong 2 "expected PIDs, or --all" record -o x.db
wrong 2 "expected PIDs, or --all" record -o x.db --all 1
wrong 2 "expected the number of a process, not 'x'" record -o x.db x
wrong 2 "--measure: expected mappings, stacks," record -o x.db --measure=smaps 1
wrong 125 "expected PIDs" record -o x.db --
wrong 2 "--pause does not go with --all" record -o x.db --all --pause
wrong 2 "expected one recording" peak
wrong 2 "--pid does not go with --system" peak --system --pid=1 x
wrong 2 "--metric does not go with --system" peak --system --metric=rss x
wrong 2 "--metric: expected pss, rss or statm, not 'uss'" peak --metric=uss x
wrong 2 "the moment is missing: --at=" show x.db
wrong 2 "-o FILE is missing" import x
wrong 2 "expected smaps files" import -o x.db
wrong 2 "--interval: expected a time" import -o x.db --interval=0 x
wrong 2 "expected one recording" export --json
wrong 2 "--json is missing" export x.db
wrong 2 "expected one recording" play
wrong 2 "--interval does not go with --speed" play --speed=1 --interval=1s x.db
wrong 2 "--speed: expected a number above 0" play --speed=0 x.db
wrong 2 "expected runs to compare" compare
wrong 125 "a command to run is missing" run --json
wrong 125 "--trace: expected a name that ends in .cmt, not 'x.trace'" run --trace=x.trace true
wrong 125 "--trace needs resident memory to compare with" run --trace --metric=swap true
wrong 2 "--trace needs resident memory to compare with" get --trace --metric=vm 1
wrong 2 "--trace: expected a name that ends in .cmt, not 'x.trace'" get --trace=x.trace 1
wrong 2 "--trace attaches to a process of this /proc, not of $PWD" get --trace --root="$PWD" 1
wrong 2 "--trace goes with one PID" record --trace -o x.db 1 2
wrong 125 "--trace goes with one PID" record --trace -o x.db -- true
wrong 125 "--only-peak does not go with --no-peak" run --no-peak --only-peak true

for command in "" run get explain wss record peak show play import export compare; do
  cmtwatch $command --help >help || complain "$command --help: $?"
  head -n 1 help | grep -q "^Usage: cmtwatch ${command:-COMMAND} " || complain "$command --help: $(head -n 1 help)"
  cmtwatch $command --version | grep -qE '^cmtwatch( [a-z]+)? [0-9.]+$' || complain "$command --version"
  awk 'length > 80 { exit 1 }' help || complain "$command --help is wider than 80 columns"
done
exit $failed
