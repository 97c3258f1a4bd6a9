# --slice: the events of a part of a trace, after allocations of the blocks that were live, so that it replays.

failed=0
complain() { echo "wrong: $*" >&2; failed=1; }
. "$SOURCE/tests/trace2cmt/every_kind.sh"

# A slice by events, from .cmt and text alike. A block that is made again has its kind, thread, time, alignment, usable size.
trace2cmt -o every_kind.cmt every_kind.trace
for input in every_kind.trace every_kind.cmt; do
  trace2cmt -s --slice=5:12 $input >out
  diff -u - out <<'END' || complain "a slice of $input"
#cmt text=1
#cmt program="app, \"deep\""
#cmt slice=5:12
malloc(8) = 1000<7> time=10 usable=24
calloc(3, 16) = 2000<8> thread=2 time=12
posix_memalign(64, 128) = 3000<9> time=13
operator new(40, align=32) = 4000<10> time=14
mark("slice 5:12") time=14
realloc(1000<7>, 16) = 1100<11> time=20
malloc(0) = 5000<12>
free(0)
malloc(18446744073709551615) = 0
calloc(18446744073709551615, 2) = 0
realloc(2000<8>, 99999999999) = 0
realloc(0, 5) = 6000<13>
#cmt end=complete
END
done

# A slice by time. A block of a realloc is made by malloc. The header of a slice of a slice names both.
trace2cmt -s --slice=0.02us:30ns every_kind.cmt | trace2cmt -s --slice=11: | LC_ALL=C sed 's/^mark("a, .*/MARK/' >out
diff -u - out <<'END' || complain "a slice of a slice, by time"
#cmt text=1
#cmt program="app, \"deep\""
#cmt slice="0.02us:30ns 11:"
calloc(3, 16) = 2000<8> thread=2 time=12
posix_memalign(64, 128) = 3000<9> time=13
operator new(40, align=32) = 4000<10> time=14
malloc(16) = 1100<11> time=20
malloc(0) = 5000<12>
mark("slice 11:") time=20
realloc(0, 5) = 6000<13>
realloc(800<2>, 6) = 6100<14>
MARK
mark("")
sample(4096)
thread_name("worker, 2") thread=2
#cmt end=complete
END

# A slice from the start makes no blocks first, and a slice without bounds is the whole trace.
trace2cmt -s --slice=:3 every_kind.trace | grep -v '#' | cmp - <(grep -v '#' every_kind.trace | head -n 3) || complain ":3"
trace2cmt -s --slice=0: every_kind.trace | grep -av '#cmt slice' | cmp - <(trace2cmt -s every_kind.trace) || complain "0:"

# Slices of a long trace are in order, have just their events, and leave the blocks alive that are live there.
write_many 30000
alive_in() { sed -n 's/^[mf].*<\([0-9]*\)>.*/\1/p' | sort | uniq -u | md5sum; }  # tags that are named once
trace2cmt -o many.cmt many.trace
while IFS=' ' read -r from to; do
  trace2cmt -s --slice=$from:$to many.cmt >slice 2>err
  [ ! -s err ] || complain "$from:$to: $(cat err)"
  sed "1,/mark(\"slice $from:$to\")/d; /^#/d" slice | cmp - <(sed -n "$((from + 1)),${to}p;${to}q" many.trace) ||
    complain "the events of $from:$to"
  [ "$(alive_in <slice)" = "$(head -n $to many.trace | alive_in)" ] || complain "what $from:$to leaves alive"
done <<'END'
1 2
10000 10001
9999 20000
25000 30000
END
[ "$(trace2cmt --slice=100us:200us many.cmt | trace2cmt -s | sed '1,/^mark/d; /^#/d' | sed 's/.*time=//' | awk '$1 < 100000 || $1 >= 200000' | wc -l)" = 0 ] ||
  complain "times outside of 100us:200us"

# Wrong values of --slice.
says() {  # says STATUS WORDS ARGUMENT...
  status=0; trace2cmt "${@:3}" >out 2>err || status=$?
  [ "$status" = "$1" ] && [ "$(head -n 1 err)" = "trace2cmt: $2" ] || complain "${*:3}: $status, $(cat err)"
}
for wrong in 5 5: : a:b 3:2 1s:7 1.5:2 -1:2 1s:0.5s 1e3s:2e3s 1x:2x 99999999999h:; do
  [ $wrong = 5: ] || says 2 "--slice: expected FROM:TO, FROM not above TO, in events, with a unit as in 1.5s:2s, or by marks as in @load:@done or @load, not '$wrong'" --slice=$wrong many.cmt
done
says 1 "many.cmt: the trace ends before --slice=30001:" -o out.cmt --slice=30001: many.cmt
says 1 "many.cmt: the trace ends before --slice=1h:" -o out.cmt --slice=1h: many.cmt
[ ! -e out.cmt ] || complain "a failed slice leaves a file"
printf 'malloc(8) = 10\n' >untimed.trace
says 1 "untimed.trace: times were not recorded (needed by --slice=1s:2s)" --slice=1s:2s untimed.trace

# The events before the damage of a .cmt can be extracted: the tool reports how many there are.
cp "$SOURCE/format-spec/vectors/blocks.cmt" whole.cmt
cat whole.cmt >damaged.cmt
printf '\252\125\252\125' | dd of=damaged.cmt bs=1 seek=300 conv=notrunc status=none
status=0; trace2cmt -o out.cmt damaged.cmt 2>err || status=$?
before=$(sed -n 's/.* before the damage can be taken out by --slice=:\([0-9]*\)$/\1/p' err)
[ "$status" = 1 ] && [ "${before:-0}" -gt 2 ] && [ "$(wc -l <err)" = 2 ] && [ ! -e out.cmt ] ||
  complain "a damaged trace: $status $(cat err)"
trace2cmt -s --slice=":$before" damaged.cmt >out 2>err || complain "what is whole of it: $? $(cat err)"
trace2cmt -s --slice=":$before" whole.cmt | cmp - out || complain "what is whole of it is another"

# The events after the damage can be extracted, too, from a keyframe on.
cp "$SOURCE/format-spec/vectors/keyframe.cmt" whole.cmt
for place in 0x1d0 0x190; do
  cat whole.cmt >damaged.cmt
  printf '\252\125\252\125' | dd of=damaged.cmt bs=1 seek=$((place)) conv=notrunc status=none
  status=0; trace2cmt -o out.cmt damaged.cmt 2>err || status=$?
  error=$(sed -n '1s/^trace2cmt: //p' err)
  hint='trace2cmt: damaged.cmt: the 64 events before the damage can be taken out by --slice=:64, the 154 events after it by --slice=512:'
  [ "$status" = 1 ] && [ "$(tail -n 1 err)" = "$hint" ] || complain "a damage before a keyframe: $status $(cat err)"
  for slice in 512: 600: 520:610; do
    trace2cmt -s --slice=$slice whole.cmt >expected
    trace2cmt -s --slice=$slice damaged.cmt >out 2>err || complain "--slice=$slice behind the damage: $? $(cat err)"
    cmp out expected || complain "--slice=$slice behind the damage is another"
    grep -q '^trace2cmt: damaged.cmt: offset 0x.*; continues after event 512, where [0-9]* blocks lived: ' err ||
      complain "--slice=$slice behind the damage: $(cat err)"
  done
  says 1 "$error" --slice=500: damaged.cmt
  says 1 "$error" --slice=512: --strict damaged.cmt
done

# A slice between marks. --anonymise hides the names of these marks.
printf 'malloc(8) = 10\nmark("load")\nmalloc(9) = 20\nmark("done")\nfree(10)\n' >marked.trace
[ "$(trace2cmt -s --slice=@load:@done marked.trace | sed '/^#/d' | tr '\n' ' ')" = \
  'malloc(8) = 10<1> mark("slice @load:@done") mark("load") malloc(9) = 20<2> ' ] || complain "a slice between marks"
trace2cmt -s --slice=@load:@done --anonymise marked.trace >slice
! grep -qE 'load|done' slice || complain "an anonymised slice names a mark"
grep -q ' slice=@1$' slice && grep -qx 'mark("slice @1")' slice || complain "an anonymised slice is no part: $(cat slice)"
trace2cmt -s --slice=@load: --anonymise marked.trace | grep ' slice=@1:$' >found || complain "an anonymised end is no end"
trace2cmt -s --slice=:@done --anonymise marked.trace | grep -q ' slice=:@1$' || complain "an anonymised begin is no part"
trace2cmt -s --slice=1: marked.trace | trace2cmt -s --slice=@load:@done --anonymise - | grep -q ' slice=@1$' || complain "two anonymised slices"
says 1 "marked.trace: the trace has no mark \"end\" after the start of the slice; it has @load, @done" -o out.cmt --slice=@load:@end marked.trace
says 1 "marked.trace: the trace has no mark \"none\"; it has @load, @done" -o out.cmt --slice=@none: marked.trace
says 1 "untimed.trace: the trace has no mark \"none\"; it has none" -o out.cmt --slice=:@none untimed.trace

# A slice has no blocks of pools from before its begin, and the tools say so.
printf 'malloc(8) = 10\npool_malloc(16, "nodes") = <1>\npool_malloc(16, "nodes") = <2>\n' >pools.trace
for slice in 0:3 2:3; do
  command -v lifetimes >/dev/null || break  # as in the build with sanitizers
  trace2cmt --slice=$slice -o pools.cmt pools.trace
  lifetimes --pool=nodes pools.cmt 2>&1 >/dev/null | grep -q 'has no blocks of pools from before its begin' && status=yes || status=no
  [ "$slice $status" = "0:3 no" ] || [ "$slice $status" = "2:3 yes" ] || complain "a slice of pools, $slice: $status"
done

command -v lifetimes >/dev/null || exit $failed  # as in the build with sanitizers

# The tools report that blocks from before the slice count as allocated in it.
for slice in 0:7 5:12; do
  trace2cmt --slice=$slice -o part.cmt every_kind.trace
  lifetimes --summary part.cmt 2>&1 >/dev/null | grep -q 'part.cmt: a part of a recording: blocks that were live at its begin count as allocated$' && status=yes || status=no
  [ "$slice $status" = "0:7 no" ] || [ "$slice $status" = "5:12 yes" ] || complain "a part, $slice: $status"
done

# lifetimes --by counts of a part what it counts of that slice of the whole: blocks from before are not allocated in it.
perl -e 'srand 7; my ($tag, @live) = 0;
  for (1 .. 3000) {
    if (@live && rand() < 0.45) { my $at = int rand @live; print "free(", (splice @live, $at, 1), ") thread=", 1 + int rand 2, "\n"; next }
    push @live, sprintf "%x<%d>", 0x1000 + 0x1000 * ++$tag, $tag;
    print "malloc(", 1 + int rand 3000, ") = $live[-1] thread=", 1 + int rand 2, "\n" }' >whole.trace
for slice in 1000: 1000:2000; do
  for by in size thread; do
    trace2cmt --slice=$slice -o part.cmt whole.trace
    lifetimes --by=$by --top=99 --json part.cmt 2>err | jq -S '[.contributors[] | {name, self}]' >of_part
    lifetimes --by=$by --top=99 --json --slice=$slice whole.trace | jq -S '[.contributors[] | {name, self}]' >of_slice
    # How long blocks from before have lived is not known.
    for file in of_part of_slice; do grep -vE '"(temporary|short_lived)_blocks"' $file >$file.known; done
    [ "$(wc -l <of_part)" -gt 30 ] && diff of_part.known of_slice.known && [ ! -s err ] || complain "the uses of a part, $slice, by $by: $(cat err)"
  done
  jq '[.[].self.allocated_blocks] | add' of_part | grep -qx "$(sed -n "${slice%:*},\$p" whole.trace | sed -n '2,$p' | { [ "$slice" = 1000: ] && cat || head -n 1000; } | grep -c ^malloc)" || complain "allocations of a part, $slice"
done

# Slices of slices, and one by a mark with a blank.
{ sed -n 1,499p whole.trace; echo 'mark("warm up")'; sed -n '500,$p' whole.trace; } >marked.trace
allocated() { lifetimes --by=size --json "$@" 2>err | jq -c '[.events, .total.allocated_blocks]'; [ ! -s err ] || complain "$*: $(cat err)"; }
part_of() {  # SLICE-OF-WHOLE SLICE...
  local slice=$1
  cp marked.trace part.trace
  for step in "${@:2}"; do trace2cmt -s --slice="$step" part.trace >next.trace && mv next.trace part.trace; done
  [ "$(allocated part.trace)" = "$(allocated --slice="$slice" marked.trace)" ] || complain "${*:2}: $(allocated part.trace), not $(allocated --slice="$slice" marked.trace)"
}
part_of 1000:2000 0:2500 1000:2000
part_of '@warm up:' '@warm up:'
part_of 1000:2000 1000:2000 0:9999
exit $failed
