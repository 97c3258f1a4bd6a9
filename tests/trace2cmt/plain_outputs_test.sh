# --to=legacy and --to=rep write the nearest calls that the forms have, and count the losses. The programs for these forms
# read the files.

failed=0
complain() { echo "wrong: $*" >&2; failed=1; }
. "$SOURCE/tests/trace2cmt/every_kind.sh"
write_many 30000

# The bytes of the example that the format is known by, with the step of 2 for the first tag.
printf 'malloc(8) = 10\nrealloc(10, 16) = 20\nfree(20)\n' | trace2cmt --to=legacy >readme.cmt 2>err
[ "$(od -An -tx1 readme.cmt | tr -d ' \n')" = 8880829081818081 ] || complain "the example: $(od -An -tx1 readme.cmt)"
[ ! -s err ] || complain "it complains of plain calls: $(cat err)"
trace2cmt -s readme.cmt >out
printf 'malloc(8) = <2>\nrealloc(<2>, 16) = <3>\nfree(<3>)\n' | diff -u - out || complain "the example, read again"

# Every kind of loss.
trace2cmt --to=legacy -o every_kind.cmt every_kind.trace 2>err
diff -u - err <<'END' || complain "losses of legacy"
trace2cmt: legacy cannot express 3 calls that were refused: left out; 1 call that was given NULL to free, or returned NULL for 0 bytes: left out; 1 free of a block that the trace does not know: left out; 1 realloc of a block that the trace does not know: written as malloc; 4 threads' starts, ends and names, and marks: left out; 1 sample: left out; 6 calls of other kinds: written as the nearest of malloc, realloc and free; 3 alignments: dropped; 1 size of 0: written as 1; 1 size that is too large: written as the largest that there is; 2 events of other threads than the first: written as if there were one
END
trace2cmt -s every_kind.cmt >out
diff -u - out <<'END' || complain "what legacy says"
malloc(8) = <2>
malloc(48) = <3>
malloc(128) = <4>
malloc(40) = <5>
realloc(<2>, 16) = <6>
malloc(1) = <7>
malloc(5) = <8>
malloc(6) = <9>
free(<3>)
free(<8>)
malloc(268435455) = <10>
free(<5>)
END

# A distance of more than 28 bits, and a step of more.
cat >far.trace <<'END'
malloc(1) = <1>
malloc(2) = <300000000>
free(<1>)
malloc(3) = <300000001>
malloc(4) = <500000000>
malloc(5) = <700000000>
free(<300000001>)
realloc(<300000000>, 6) = <700000001>
free(<700000000>)
END
trace2cmt --to=legacy far.trace 2>err >far.cmt
trace2cmt -s far.cmt >out
diff -u - out <<'END' || complain "tags that are far apart"
malloc(1) = <2>
malloc(2) = <3>
free(<2>)
malloc(3) = <4>
malloc(4) = <200000003>
malloc(5) = <400000003>
malloc(6) = <400000004>
free(<400000003>)
END
[ "$(cat err)" = "trace2cmt: legacy cannot express 2 blocks given back that are too old to be named: left out, a realloc written as malloc" ] ||
  complain "$(cat err)"

# .rep: header, ids that follow a block through its reallocs, balance, and true counts.
trace2cmt --to=rep every_kind.trace >every_kind.rep 2>err
diff -u - every_kind.rep <<'END' || complain "what rep says"
2147483647
8
17
1
a 0 8
a 1 48
a 2 128
a 3 40
r 0 16
a 4 1
a 5 5
a 6 6
f 1
f 5
a 7 2147483647
f 3
f 0
f 2
f 4
f 6
f 7
END
grep -q "^trace2cmt: rep cannot express .*; 5 blocks alive at the end: freed there, so that the trace is balanced$" err ||
  complain "balance: $(tail -n 1 err)"
trace2cmt --to=rep -o many.rep many.trace 2>/dev/null
awk 'NR == 2 { ids = $1 } NR == 3 { operations = $1 } NR <= 4 { next }
     $1 == "a" { if ($2 != made++) exit 1; size[$2] = $3; live++ } $1 == "f" { if (!($2 in size)) exit 1; delete size[$2]; live-- }
     END { exit !(made == ids && NR - 4 == operations && live == 0) }' many.rep || complain "many.rep does not hold together"

trace2cmt --to=rep many.rep | cmp - many.rep || complain "a .rep that was read is written otherwise"

# Neither form goes to a terminal, and no output is left after a failure.
status=0; trace2cmt --to=rep many.trace >/dev/full 2>err || status=$?
[ "$status" = 1 ] && grep -q 'No space left on device' err || complain "a full disk: $status, $(cat err)"
exit $failed
