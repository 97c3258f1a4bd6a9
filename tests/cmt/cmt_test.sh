# Each command of cmt starts its tool, with the words of the table and those that were given, and is the tool from then on.

failed=0
complain() { echo "$*" >&2; failed=1; }

# A driver between tools that print how they were called.
mkdir bin; cp "$(command -v cmt)" bin/cmt
for tool in cmttrace cmtreport lifetimes overhead cmtreplay cmtwatch trace2cmt; do
  printf '#!/bin/sh\necho %s "[$*]"\n' $tool >bin/$tool; chmod +x bin/$tool
done
# starts CALL WORD...: cmt with these words calls that.
starts() {
  local wanted=$1; shift
  [ "$(bin/cmt "$@")" = "$wanted" ] || complain "cmt $*: $(bin/cmt "$@"), not $wanted"
}
starts 'cmttrace [--stacks -- app  x]' record --stacks -- 'app  x'
starts 'cmtreport [-o x.html x.cmt]' report -o x.html x.cmt
starts 'cmtreport [--diff  a b]' diff a b
starts 'lifetimes [--by=function x]' who x
for option in --by=line --by --folded --pprof=x --speedscope; do starts "lifetimes [$option x]" who $option x; done
starts 'lifetimes [--by=function -- --by=line]' who -- --by=line
starts 'overhead [--by=function --top=3 x]' pages --top=3 x
starts 'overhead [--by=thread x]' pages --by=thread x
starts 'cmtreplay []' replay
starts 'cmtreplay [--verify --alloc=x y]' verify --alloc=x y
starts 'cmtreplay [--tune --results=x y]' tune --results=x y
starts 'cmtreplay [--tune=memory y]' tune --tune=memory y
starts 'cmtwatch [run -r -- app]' watch run -r -- app
starts 'trace2cmt [-s x]' convert -s x
starts 'trace2cmt [--info x]' info x
starts 'trace2cmt [--help]' help convert   # no page is installed beside it
starts 'cmtwatch [explain --help]' help explain
starts 'cmtreplay [--help]' help verify
[ "$(cmt --help | sed -n 's/^  [a-z]* .* \([a-z2]*\)$/\1/p' | grep -xE 'cmt.+|trace2cmt|lifetimes|overhead' | sort -u | wc -l)" = 7 ] ||
  complain "cmt --help does not list all tools"

# Help is one screen of 80 columns.
cmt --help >help
[ "$(wc -l <help)" -le 32 ] && [ "$(wc -L <help)" -le 80 ] || complain "cmt --help: $(wc -lL <help) lines and columns"
status=0; cmt >nothing || status=$?
[ $status = 2 ] && cmp nothing help || complain "cmt without arguments: exit $status"
cmt help | cmp - help; cmt -h | cmp - help; cmt help --help | cmp - help
[ "$(cmt --version)" = "cmt $(sed -n 's/^Version: //p' "$BUILD/cmt.pc")" ] || complain "cmt --version: $(cmt --version)"

# refuses STATUS MESSAGE WORD...
refuses() {
  local wanted=$1 message=$2 status=0; shift 2
  bin/cmt "$@" >out 2>err || status=$?
  [ $status = "$wanted" ] && [ ! -s out ] && [ "$(head -n 1 err)" = "cmt: $message" ] || complain "cmt $*: exit $status, $(cat out err)"
}
refuses 2 "unknown command 'recrod'; did you mean 'record'?" recrod --stacks
refuses 2 "unknown command 'nonsense'" nonsense
refuses 2 "unknown command 'lifetimes'; 'lifetimes' is a tool itself" lifetimes
refuses 2 "unknown command 'reprot'; did you mean 'report'?" help reprot
refuses 2 "help is about one command, not also 'b'" help who b
rm bin/overhead; chmod -x bin/lifetimes
refuses 127 "$PWD/bin/overhead: No such file or directory" pages x
refuses 126 "$PWD/bin/lifetimes: Permission denied" who x

# Status, signals and ignored signals are the tool's.
printf '#!/bin/sh\n[ "$1" ] && exit "$1"\nkill -TERM $$\n' >bin/cmtreplay
status=0; bin/cmt replay 7 || status=$?
[ $status = 7 ] || complain "a status of 7 became $status"
status=0; bin/cmt replay 2>/dev/null || status=$?
[ $status = 143 ] || complain "a SIGTERM became $status"
printf '#!/bin/sh\ngrep SigIgn /proc/$$/status\n' >bin/cmtwatch
[ "$(bin/cmt watch)" = "$(bin/cmtwatch)" ] || complain "the tool ignores other signals: $(bin/cmt watch)"

# The real tools: two traces are compared.
printf 'malloc(8) = 1000<1>\nfree(1000<1>)\n' >before.trace
printf 'malloc(8) = 1000<1>\nmalloc(24) = 2000<2>\nfree(1000<1>)\n' >after.trace
cmt diff --text before.trace after.trace >diff
cmtreport --diff=before.trace --text after.trace | cmp - diff
status=0; cmt diff before.trace 2>err || status=$?
[ $status = 2 ] && grep -qx 'cmtreport: --diff compares two traces: BEFORE and AFTER, not 1' err || complain "one trace: $(cat err)"
exit $failed
