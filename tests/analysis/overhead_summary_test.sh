# Checks that the summary of overhead equals the totals of the annotation, and golden files.

golden=$SOURCE/tests/analysis/golden
failed=0
complain() { echo "$*" >&2; failed=1; }

# 10,000 events, blocks of up to 6,000 bytes at addresses that are never used again.
awk 'BEGIN {
  srand(3)
  for (event = 1; event <= 10000; event++) {
    if (live < 50 || rand() < 0.45) {
      block[live++] = sprintf("%x<%d>", 65536 + 6000 * event, event)
      printf "malloc(%d) = %s\n", 1 + rand() * 5999, block[live - 1]
    } else {
      pick = int(rand() * live)
      printf "free(%s)\n", block[pick]
      block[pick] = block[--live]
    }
  }
}' >a.trace

# Every sample says what the line of its event says with --totals.
for size in 4K 64K; do
  overhead --csv --page-size=$size a.trace | awk -F, 'NR > 1 { print $1, $3, $4, $6 }' >samples
  [ "$(wc -l <samples)" -gt 100 ] || complain "too few samples"
  overhead --totals --page-size=$size a.trace |
    sed -n 's/.*, live \([0-9]*\) bytes in \([0-9]*\) blocks on \([0-9]*\) pages$/\1 \2 \3/p' |
    awk 'NR == FNR { wanted[$1]; next } FNR in wanted { print FNR, $0 }' samples - | diff samples - >difference ||
    complain "$size: $(head -n 3 difference)"
done

# A .cmt has the same summary as its text, and the forms equal the golden files.
trace2cmt -o a.cmt a.trace
overhead --summary a.cmt | tail -n +2 >from_cmt
overhead --summary a.trace | tail -n +2 | diff - from_cmt || complain "the summary of .cmt differs"
for form in json csv summary; do
  overhead --$form "$golden/kinds.trace" | diff -u "$golden/kinds.overhead.$form" - || complain "--$form differs"
done

# Blocks from before the trace are in no figure. The summary reports their ends. A block that ends twice is none.
trace2cmt --to=text a.trace | sed 1,3000d >rest.trace
overhead --summary rest.trace 2>/dev/null | grep '^  not counted: unknown blocks, made before the trace began or not recorded; frees of them: [0-9,]*$' >found ||
  complain "blocks from before the trace are not reported"

refused() {  # refused STATUS WORDS OPTION...
  local status=0 expected=$1 words=$2; shift 2
  overhead "$@" >out 2>err || status=$?
  [ "$status" = "$expected" ] && grep -qF -- "$words" err || complain "$*: exit $status, $(cat err)"
}
sed 's/[0-9a-f]*</</' a.trace >tags.trace
refused 1 'tags.trace:1: a block without an address: its neighbours cannot be known' --summary tags.trace
refused 2 '--huge-pages does not go with --summary' --summary --huge-pages a.trace
refused 2 '--csv does not go with --json' --csv --json a.trace
refused 2 '--clock does not go with --json' --json --clock=bytes a.trace
overhead --json /dev/null | grep '"events": 0' >out || complain "an empty trace"
printf 'malloc(8) = 1000<1>\nmalloc(8) = 1000<2>\nfree(1000<2>)\nfree(1000<2>)\n' >bad.trace
overhead --json bad.trace 2>err | grep '"unknown_ends": 0' >out || complain "a block that ends twice counts as unknown"
overhead --json bad.trace 2>err | grep '"defects": 2' >out || complain "defects are not counted"
[ "$(tail -n 1 err)" = "overhead: 2 defects in the trace" ] || complain "the count of defects is not reported"
exit $failed
