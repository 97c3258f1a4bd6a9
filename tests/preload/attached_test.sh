# The tracer is brought into a program that runs, and lets go of it again. The program plays cmttrace too (attached.c).

failed=0
complain() { echo "attached ($mode): $*" >&2; failed=1; }
program=$BUILD/tests/preload/attached collector=$BUILD/preload/cmttrace-collector
plugin=$BUILD/tests/preload/libdeepbound.so
run() {  # MODE VARIABLE...: in an empty folder t
  mode=$*
  rm -rf t
  mkdir t
  : >t/status
  timeout 100 env "${@:2}" "$program" "$1" "$TRACER" "$collector" "$PWD/t" "$plugin" >out 2>err || complain "exit $?"
  [ ! -s err ] || complain "said: $(cat err)"
  for trace in t/*.cmt; do
    [ -s "$trace" ] || continue
    trace2cmt --to=text "$trace" >"${trace%.cmt}.text" 2>said || complain "$trace: $(cat said)"
  done
}
has() {  # RECORDING COUNT LINE
  found=$(grep -cE "^$3( thread=[0-9]+)?( time=[0-9]+)?( stack=[0-9]+)?\$" "t/$1.text" || true)
  [ "$found" = "$2" ] || complain "recording $1: $found lines of $3, not $2"
}
b='[0-9a-f]+<[0-9]+>'

# All calls between attach and detach are recorded, and no others. Afterwards the words of the modules are as before.
for how in LD_BIND_NOW=1 lazy=1; do
  run counts "$how"
  [ "$(wc -l <out)" = 3 ] || complain "$(cat out)"
  while read -r _ i _ size _ each; do
    has "$i" "$each" "malloc\\($size\\) = $b"
    has "$i" "$each" "realloc\\($b, $((size + 1))\\) = $b"
    has "$i" "$each" "calloc\\(2, $size\\) = $b"
    has "$i" "$each" "posix_memalign\\(64, $size\\) = $b"
    has "$i" "$each" "malloc\\(17\\) = $b"
    has "$i" "$each" "malloc\\($((size + 2))\\) = $b"
    has "$i" 0 "malloc\\($((size + 50))\\) = $b"
    # Each thread's frees, and those of blocks from before the attach, that were never seen.
    [ "$(grep -c '^free(' t/$i.text)" -ge $((5 * each)) ] || complain "recording $i: $(grep -c '^free(' t/$i.text) frees"
    unseen=$(sed -n "${i}s/.* unseen=\\([0-9]*\\) .*/\\1/p" t/status)
    [ "$unseen" -ge "$each" ] && [ "$unseen" -lt $((each + 20)) ] || complain "recording $i: $unseen unseen blocks"
  done <out
  ! grep -v ' lost=0 repairs=0 ' t/status || complain 'something was lost, or wrong'
  grep -q ' stack=' t/2.text || complain 'no stacks in the second recording'
done

run loads
[ "$(cat out)" = $'70\n160' ] || complain "$(cat out)"
for i in 1 2; do
  each=$(sed -n ${i}p out)
  has $i "$each" "malloc\\(43001\\) = $b"
  has $i "$each" "realloc\\($b, 43002\\) = $b"
  has $i "$each" "calloc\\(1, 43003\\) = $b"
done

run storm
[ "$(ls t/*.text | wc -l)" = 4 ] || complain "$(ls t)"
/usr/bin/python3 "$SOURCE/tests/preload/checks/trace.py" t/*.text >said 2>&1 || complain "$(cat said)"
! grep -v ' lost=0 repairs=0 ' t/status || complain 'something was lost, or wrong'
! grep -l 'malloc(7777)' t/*.text || complain 'a forked child was recorded'

run killed
has 2 1000 "malloc\\(6000\\) = $b"

run refused
exit $failed
