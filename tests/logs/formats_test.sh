# Logs of other tools through trace2cmt: the samples, compression, several processes, repairs.

failed=0
complain() { echo "wrong: $*" >&2; failed=1; }

# run COMMAND...: sets `status`, and writes the files out and err.
run() { status=0; "$@" >out 2>err || status=$?; }

# says STATUS LINES: checks that the last run ended with STATUS, and with LINES on standard error.
says() {
  [ "$status" = "$1" ] || complain "exit $status, not $1: $(cat err)"
  [ "$(cat err)" = "$2" ] || complain "it said: $(cat err), not: $2"
}

cp "$SOURCE"/tests/logs/samples/* .

# Each sample becomes its text: from a file, from a pipe, with --from, with ends of lines as on Windows, and through .cmt.
for text in *.text; do
  name=${text%.text}
  run trace2cmt -s $name.log
  cmp -s out $text || complain "$name: $(diff out $text | head -n 5)"
  run trace2cmt -s --from=${name%%_*} - < <(cat $name.log)
  cmp -s out $text || complain "$name from a pipe: $(diff out $text | head -n 5)"
  run trace2cmt -s < <(sed 's/$/\r/' $name.log)
  cmp -s out $text || complain "$name with CR LF: $(diff out $text | head -n 5)"
  trace2cmt -o whole.cmt $name.log 2>/dev/null
  trace2cmt -s whole.cmt 2>/dev/null | cmp -s - $text || complain "$name through .cmt"
done

# Compressed input is decompressed, whatever tool compressed it and whatever its name.
packers=
for packer in gzip zstd xz bzip2; do
  ! command -v $packer >/dev/null || packers="$packers $packer"
done
awk '{ line[NR] = $0 } END { for (i = 0; i < 500; ++i) for (j = 1; j <= NR; ++j) print line[j] }' mtrace.log >long.log
for packer in $packers; do
  $packer -c mtrace.log >packed
  run trace2cmt -s packed
  cmp -s out mtrace.text && [ "$status" = 0 ] || complain "$packer: $(cat err)"
  run trace2cmt -s < <(cat packed)
  cmp -s out mtrace.text || complain "$packer from a pipe: $(cat err)"
  # Several compressed streams in a row are read as one, as the compressor itself does.
  { head -n 20 mtrace.log | $packer -c; tail -n +21 mtrace.log | $packer -c; } >packed
  run trace2cmt -s packed
  cmp -s out mtrace.text || complain "two streams of $packer: $(cat err)"
  trace2cmt -o whole.cmt mtrace.log
  $packer -c whole.cmt >packed
  # Names are where they are known: at the end, if the input cannot seek.
  cmp -s <(trace2cmt -s packed | sort) <(sort mtrace.text) || complain ".cmt in $packer"
  $packer -c mtrace.text >packed
  lifetimes packed >out && lifetimes mtrace.text | cmp -s - out || complain "lifetimes of $packer"
  # An input that is cut off is read to its cut, with a warning. Damage is an error with its place.
  $packer -c long.log >packed
  head -c $(($(wc -c <packed) * 2 / 3)) packed >cut
  run trace2cmt -o whole.cmt --from=mtrace cut
  [ "$status" = 0 ] && grep -qx "trace2cmt: warning: cut: the trace breaks off; all that is whole was read" err ||
    complain "cut $packer: exit $status, $(tail -n 3 err)"
  run trace2cmt --strict -s cut
  [ "$status" = 1 ] || complain "cut $packer with --strict: exit $status"
  { $packer -c mtrace.log; echo words and more words; } >packed
  run trace2cmt -s packed
  says 1 "trace2cmt: packed: offset 0x$(printf %x $(($(wc -c <packed) - 21))): $packer data is followed by something else"
done
{ head -c 100 /dev/zero | tr '\0' x | gzip -c | head -c 15; echo words and more words; } >damaged
run trace2cmt -s damaged
[ "$status" = 1 ] && grep -q '^trace2cmt: damaged: offset 0x[0-9a-f]*: gzip data is damaged$' err || complain "damaged: $(cat err)"
if command -v zstd >/dev/null; then
  zstd -q -c --long=28 <mtrace.log >packed
  run trace2cmt -s packed
  cmp -s out mtrace.text || complain "a window of 256 MiB: $(cat err)"
fi

# --from overrides recognition, and a log that lacks a needed fact is an error.
run trace2cmt -s --from=kdump mtrace.text
says 1 "trace2cmt: mtrace.text:1: expected a record of kdump: #cmt text=1 (no line of this input is understood)"
run trace2cmt -s --from=cmt mtrace.log
says 1 "trace2cmt: mtrace.log: not a .cmt"
run trace2cmt -s --from=legacy mtrace.log
says 1 "trace2cmt: mtrace.log: not a .cmt of 2019"
run trace2cmt -s --from=text mtrace.text
cmp -s out mtrace.text || complain "--from=text"
run trace2cmt --from=word mtrace.log
says 2 "trace2cmt: --from: expected text, cmt, legacy, android, dtrace, heaptrack, kdump, logalloc, ltrace, mtrace, rep or valgrind, not 'word'
Try 'trace2cmt --help' for more information."

# Several processes: one is chosen, or each goes to a file of its own.
run trace2cmt -s kdump_several.log
says 1 "trace2cmt: kdump_several.log:2: processes 61039 and 61040 are in this log: choose one with --pid=N, or name an output for a file of each with -o"
run trace2cmt -s -o all.trace - < <(cat kdump_several.log)
[ "$status" = 1 ] && [ "$(echo all*)" = "all*" ] || complain "several processes from a pipe: $status"
run trace2cmt -s -o all.trace kdump_several.log
says 0 "trace2cmt: all.61039.trace: process 61039
trace2cmt: all.61040.trace: process 61040"
[ "$(echo all*)" = "all.61039.trace all.61040.trace" ] || complain "files of processes: $(echo all*)"
grep -q '^#cmt pid=61040$' all.61040.trace && grep -q '^#cmt program="Web Content"$' all.61040.trace &&
  grep -q '^free(800607420<1>) thread=1$' all.61040.trace || complain "a process: $(cat all.61040.trace)"
# Records that are no calls hide no process, and with --pid those of another process are not counted.
{ cat kdump_several.log; sed -n '1s/ USER .*/ CALL  read(0)/p' kdump_several.log; } >several_others.log
run trace2cmt -s -o others.trace several_others.log
[ "$status" = 0 ] && [ "$(echo others*)" = "others.61039.trace others.61040.trace" ] || complain "with other records: $status $(cat err)"
run trace2cmt -s --pid=61040 several_others.log
! grep 'no call' err || complain "--pid with records of another process: $(cat err)"
run trace2cmt -s --pid=61040 kdump_several.log
cmp -s out all.61040.trace || complain "--pid: $(cat out err)"
run trace2cmt -s --pid=7 kdump_several.log
says 1 "trace2cmt: kdump_several.log: process 7 is not in this log"
run trace2cmt -s --pid=61040 all.61040.trace
says 0 ""
run trace2cmt -s --pid=7 all.61040.trace
says 1 "trace2cmt: all.61040.trace: process 7 is not in this trace"
run trace2cmt -s --pid=7 mtrace.text
says 1 "trace2cmt: mtrace.text: the trace has no process id (needed by --pid)"

# A damaged pid is another process, which may have no event: the others are written all the same.
printf '     7 make     USER  fr(0x1)\n' | cat - kdump_several.log >pids.log
run trace2cmt -s -o pids.trace pids.log
[ "$status" = 0 ] && cmp -s <(grep -v '^#' pids.61040.trace) <(grep -v '^#' all.61040.trace) && ! grep -qv '^#' pids.7.trace &&
  grep -qx 'trace2cmt: 0 events, 1 repair: 1 line not understood' err || complain "a damaged pid: $status $(cat err)"

# Each kind of repair is reported with its place, counted by itself, kept in either form, and an error with --strict.
cat >broken.log <<'END'
   1 100001 a USER  0x1000 = malloc(64)
   1 100001 a USER  frob(0x1000)
   1 100001 a USER  free(0x9000)
   1 100001 a USER  0x2000 = realloc(0x9100, 32)
   1 100002 a USER  0x2000 = malloc(33)
   1 100001 a USER  0x3000 = realloc(0x2000, 99)
   1 100002 a USER  free(0x2000)
   1 100001 a USER  free(0x1010)
   1 100001 a USER  0x1000 = malloc(8)
   1 100001 a USER  free(0x1000)
END
cat >expected <<'END'
malloc(64) = 1000<1>
malloc(32) = 2000<2>
realloc(2000<2>, 99) = 3000<3>
malloc(33) = 2000<4> thread=1
free(2000<4>) thread=1
free(1000<1>)
malloc(16) = 1000<5>
free(1000<5>)
malloc(8) = 1000<6>
free(1000<6>)
#cmt repairs=6
#cmt repairs_not_understood=1
#cmt repairs_unmatched_free=1
#cmt repairs_unmatched_realloc=1
#cmt repairs_order_race=1
#cmt repairs_double_allocation=1
#cmt repairs_misfree=1
#cmt end=complete
END
last="trace2cmt: 10 events, 6 repairs: 1 line not understood, 1 free of no block dropped, 1 realloc of no block taken as an \
allocation, 1 order race swapped, 1 block handed out twice and ended first, 1 misfree"
run trace2cmt -s broken.log
says 0 "trace2cmt: broken.log:2: expected malloc, realloc or free behind USER:    1 100001 a USER  frob(0x1000)
trace2cmt: broken.log:3: no block lives at this address: dropped
trace2cmt: broken.log:4: no block lives at this address: taken as an allocation
trace2cmt: broken.log:5: a block lives at this address, and is given back later: moved behind that
trace2cmt: broken.log:8: the address is inside a block: that one ended, and its head begun anew
trace2cmt: broken.log:9: a block lives at this address already: ended first
$last"
tail -n +5 out | cmp -s - expected || complain "broken.log: $(diff <(tail -n +5 out) expected)"
trace2cmt -o whole.cmt broken.log 2>err
[ "$(tail -n 1 err)" = "$last" ] || complain "repairs on the way to .cmt: $(tail -n 1 err)"
trace2cmt -s whole.cmt 2>err | tail -n +5 | cmp -s - expected && [ "$(cat err)" = "$last" ] || complain "repairs in a .cmt: $(cat err)"
while IFS='|' read -r line words log; do
  printf "$log" >one.log
  run trace2cmt -s --strict one.log
  says 1 "trace2cmt: one.log:$line: $words"
done <<'END'
1|expected a call: frob|frob\n1 +++ exited (status 0) +++\n
2|no block lives at this address: dropped|1 a->malloc(8) = 0x10\n1 a->free(0x20) = <void>\n
2|no block lives at this address: taken as an allocation|1 a->malloc(8) = 0x10\n1 a->realloc(0x20, 9) = 0x30\n
2|a block lives at this address already: ended first|1 a->malloc(8) = 0x10\n2 a->malloc(9) = 0x10\n2 a->free(0x10) = <void>\n
2|a block lives at this address, and is given back later: moved behind that|1 a->malloc(8) = 0x10\n2 a->malloc(9) = 0x10\n1 a->free(0x10) = <void>\n
2|the address is inside a block: that one ended, and its head begun anew|1 a->malloc(8) = 0x10\n1 a->free(0x14) = <void>\n
END
printf '   1 a USER  free(0x9000)\n' >one.log
run trace2cmt -s one.log
[ "$(tail -n 1 err)" = "trace2cmt: 0 events, 1 repair: 1 free of no block dropped" ] || complain "$(tail -n 1 err)"

# The other tools read a log as they read its text.
same() {  # same NAME TOOL...
  local name=$1; shift
  "$@" $name.log >log.json 2>err && "$@" $name.text >text.json 2>>err && [ ! -s err ] || complain "$* $name: $(cat err)"
  cmp -s <(sed "s/$name[.]log/$name.text/" log.json) text.json || complain "$* $name: $(diff log.json text.json | head -n 5)"
}
for name in mtrace dtrace_c heaptrack heaptrack_v2 kdump ltrace_x valgrind_cxx rep; do same $name lifetimes --json; done
for name in mtrace kdump ltrace_x; do same $name overhead --json; done
for name in kdump heaptrack_v2; do same $name cmtreport --json; done
same ltrace_x cmtreplay --verify --alloc=libc
run lifetimes --baseline=ltrace_demangled.log ltrace_demangled.log  # begins with a bracket, as JSON does
[ "$status" = 0 ] || complain "a baseline: $(cat err)"
run lifetimes kdump_several.log
says 1 "lifetimes: kdump_several.log:2: processes 61039 and 61040 are in this log: trace2cmt --pid=N converts one of them"
run overhead --summary rep.log
says 1 "overhead: rep.log:5: a block without an address: its neighbours cannot be known"

# A log of a format that is not known is refused, and not read as if it were another.
printf 'v 20000 4\n+ 18 1 55a4\n' >later.log
run trace2cmt -s later.log
says 1 "trace2cmt: later.log:1: format 4 of heaptrack 2.0.0; this reader knows formats 0 to 3"

# A log without a call of the allocator is named by its records, and is not empty.
{ for name in a b b c c c d e f g; do echo "12 prog->$name(1, 2) = 3"; done; echo '12 +++ exited (status 0) +++'; } >others.log
run trace2cmt -s others.log
says 1 "trace2cmt: others.log: no call of the allocator is in this log, but 3 c, 2 b, 1 a, 1 d, 1 e, 2 of 2 other kinds"
echo '12 prog->malloc(1) = 0x10' >>others.log
run trace2cmt -s others.log
says 0 "trace2cmt: 10 records are no calls of the allocator: 3 c, 2 b, 1 a, 1 d, 1 e, 2 of 2 other kinds"

# Records that are no calls of the allocator are counted.
run trace2cmt -s "$SOURCE/tests/logs/samples/dtrace.log"
[ "$status" = 0 ] && grep -qx 'trace2cmt: 2 records are no calls of the allocator: 1 aspace-sample, 1 mmap' err || complain "$(cat err)"
exit $failed
