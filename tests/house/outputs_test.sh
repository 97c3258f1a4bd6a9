# Outputs of every tool. A reader that closes its pipe ends a tool in silence, as SIGPIPE does. A symbolic link is followed,
# to a file that is there or not yet, and stays.

failed=0
complain() { echo "$*" >&2; failed=1; }

cat >app.trace <<'TRACE'
#cmt text=1
malloc(100) = 1000<1> time=1000
malloc(200) = 2000<2> time=2000
free(1000<1>) time=3000
malloc(50) = 1000<3> time=4000
free(2000<2>) time=5000
free(1000<3>) time=6000
#cmt end=complete
TRACE
cmtwatch record --interval=10ms -o app.db -- sleep 0.05 2>err || complain "record: $(cat err)"

# closed COMMAND...: standard output is a pipe without a reader.
closed() {
  timeout 100 perl -e 'pipe R, W; close R; open STDOUT, ">&", \*W; $SIG{PIPE} = "DEFAULT"; exec @ARGV' "$@" 2>err </dev/null &&
    status=0 || status=$?
  [ $status = 141 ] && [ ! -s err ] || complain "a closed pipe, $*: $status $(cat err)"
}
for tool in trace2cmt lifetimes overhead cmtreport cmtreplay cmtwatch cmttrace 'cmtwatch record' cmt; do closed $tool --help; done
for form in text cmt csv; do closed trace2cmt --to=$form app.trace; done
for option in --info --verify; do closed trace2cmt $option app.trace; done
for option in '' --summary --json --csv --counts; do closed lifetimes $option app.trace; done
for option in '' --summary --json; do closed overhead $option app.trace; done
for option in --text --json; do closed cmtreport $option app.trace; done
for option in '' --json --csv; do closed cmtreplay --alloc=null --runs=1 $option app.trace; done
closed cmtwatch peak app.db
closed cmtwatch show --at=0s app.db
closed cmtwatch export --json app.db
closed cmtwatch get --json --interval=10ms --duration=30ms $$
# A command that is watched goes on to its end.
cmtwatch run --csv --interval=1ms -o >(head -n 1 >first) -- perl -e 'select undef, undef, undef, 0.1; exit 4' 2>err && status=0 || status=$?
[ $status = 4 ] && [ ! -s err ] || complain "run: $status $(cat err)"
# Any other failure is reported.
for command in 'trace2cmt app.trace' 'lifetimes app.trace' 'cmtreport --json app.trace' 'cmtwatch peak app.db'; do
  $command >/dev/full 2>err && status=0 || status=$?
  [ $status = 1 ] && grep -q 'No space left on device' err || complain "$command >/dev/full: $status $(cat err)"
done

for command in 'lifetimes --pprof' 'lifetimes --speedscope' 'trace2cmt --to=heaptrack --output'; do
  grep -v '^#' app.trace | sed '1i #cmt text=1\n#frame 1 module=0 address=7f01\n#node 1 parent=0 frame=1' | $command=/dev/full 2>err && status=0 || status=$?
  [ $status = 1 ] && grep -qx "${command%% *}: /dev/full: No space left on device" err || complain "$command=/dev/full: $status $(cat err)"
done

# A disk that fills up, here a limit of 1 KiB for each file: the message names the file, and an older whole one stays.
# limited FILE COMMAND...
limited() {
  echo old >"$1"
  (ulimit -f 1 && trap '' XFSZ && exec "${@:2}" >out 2>err </dev/null) && status=0 || status=$?
  [ $status = 1 ] && [ "$(tail -n 1 err)" = "${said:-$2}: $1: File too large" ] && [ "$(cat "$1")" = old ] ||
    complain "a file of 1 KiB, ${*:2}: $status $(cat err), $(ls -l "$1")"
  rm "$1"
}
{ echo '#cmt text=1'; for n in $(seq 200); do echo "malloc($n) = $((n * 1000))<$n>"; done; } >many.trace
limited o.txt lifetimes --annotate -o o.txt many.trace
limited o.json lifetimes --summary -o o.json many.trace
limited o.svg lifetimes --plot=o.svg many.trace
limited o.html overhead --plot=o.html many.trace
limited o.json overhead -o o.json many.trace
limited o.json cmtreport -o o.json many.trace
limited o.html cmtreport -o o.html many.trace
limited o.txt trace2cmt -o o.txt many.trace
said='cmtwatch export' limited o.json cmtwatch export --json -o o.json app.db
said='cmtwatch explain' limited o.json cmtwatch explain --json -o o.json $$
said='cmtwatch explain' limited o.html cmtwatch explain -o /dev/null --plot=o.html $$

# An output that is an input is refused, by whatever name, and the input stays as it is. trace2cmt converts in place.
own_output() {
  cmp -s app.trace kept.trace || complain "$*: the input was replaced"
  "$@" >out 2>err <app.trace && status=0 || status=$?
  [ "$status $(head -n 1 err)" = "2 $1: would replace $output, which it reads; give another file to write to" ] ||
    complain "$*: $status $(cat err)"
}
cp app.trace kept.trace
ln -s app.trace same.trace
ln app.trace hard.trace
for output in app.trace ./app.trace same.trace hard.trace; do
  for file in app.trace -; do
    own_output lifetimes --pprof=$output $file
    own_output lifetimes --speedscope=$output $file
    own_output cmtreport -o $output $file
  done
done
output=app.trace
own_output cmtreport --replay=app.trace -o app.trace same.trace
cmp -s app.trace kept.trace || complain "the input was replaced"
rm same.trace hard.trace
trace2cmt -o kept.trace kept.trace 2>err && trace2cmt --text kept.trace | cmp - app.trace || complain "trace2cmt in place: $(cat err)"
rm kept.trace

# linked NAME COMMAND...: writes through link.NAME.
linked() {
  for target in there missing; do
    mkdir -p folder
    rm -f link.$1 folder/*
    ln -s folder/$target.$1 link.$1
    [ $target = missing ] || echo old >folder/there.$1
    [ $target.$1 != there.db ] || rm -f folder/there.db
    "${@:2}" >out 2>err </dev/null || complain "${*:2}, $target: $(cat err)"
    [ -L link.$1 ] && [ "$(ls folder)" = $target.$1 ] && [ -s folder/$target.$1 ] && ! grep -qx old folder/$target.$1 ||
      complain "${*:2}, $target: $(ls -l . folder)"
  done
}
linked cmt trace2cmt -o link.cmt app.trace
linked trace trace2cmt -o link.trace app.trace
linked cmt cmttrace -o link.cmt -- perl -e 1
linked svg lifetimes --plot=link.svg app.trace
linked html cmtreport -o link.html app.trace
linked html overhead --plot=link.html app.trace
linked svg cmtwatch run --plot=link.svg --interval=10ms -- sleep 0.05
linked csv cmtwatch run --csv --interval=10ms -o link.csv -- sleep 0.03
linked db cmtwatch record --interval=10ms -o link.db -- sleep 0.03
exit $failed
