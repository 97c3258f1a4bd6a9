# --verify: a whole file is "ok", and each fault is reported with its offset. Checks all vectors, files with one wrong
# statement, and trace2cmt's own files. Every cut and every flipped bit are in trace2cmt's unit tests.

failed=0
complain() { echo "wrong: $*" >&2; failed=1; }
verify() { status=0; trace2cmt --verify "$@" >out 2>err || status=$?; }
vectors=$SOURCE/format-spec/vectors

# Vectors: --verify finds in damaged ones the same fault as a reader, at the same offset.
for file in "$vectors"/*.cmt "$vectors"/*.text; do
  name=${file##*/}
  [ "$name" != sampled.text ] || continue  # is no text trace
  verify "$file"
  said=$(<out)
  case $name in
    bad_*.cmt)
      read -r error <"${file%.cmt}.error" || true
      place=${error#*: }
      place=${place%%: *}
      [ "$status" = 1 ] && [[ $said == *"$name: $place: "* ]] || complain "$name: $status, $said, not at $place"
      ;;
    cut_*.cmt | legacy_bad.cmt | legacy_cut.cmt) [ "$status" = 1 ] || complain "$name: $status, $said" ;;
    touches_wrong.*) [ "$status" = 1 ] || complain "$name: $status, $said" ;;  # by what: touches_test.sh
    large.text) [[ $said == *':4: lies on a live block: that one ended first'* ]] || complain "$name: $said" ;;
    times.text) [[ $said == *':5: its time is before that of the event before: raised to that' ]] || complain "$name: $said" ;;
    large.*) [[ $said == *[\ :]'4: 1<4294967299> lies on a live block: 7f0000000000<4294967296>'* ]] || complain "$name: $said" ;;
    times.*) [[ $said == *[\ :]'5: time goes back from 4611686018427387903 to 1501' ]] || complain "$name: $said" ;;
    skip_more_fields.cmt | skip_unknown_section.cmt)  # sections were put in without a new index
      [[ $said == *'the index does not name the blocks that there are' ]] || complain "$name: $said" ;;
    *) [ "$status" = 0 ] && [[ $said == *"$name: ok, "* ]] || complain "$name: $status, $said" ;;
  esac
  [ ! -s err ] || complain "$name: $(cat err)"
done

cp "$vectors/blocks.cmt" .

# Files with one wrong value and a right checksum: changed.cmt has other bytes at the first place of BYTES in the section
# TYPE.
change() {  # change TYPE OLD NEW, in hex
  python3 - "$@" <<'END'
import struct, sys, zlib
data = bytearray(open("blocks.cmt", "rb").read())
kind, old, new = sys.argv[1].encode(), bytes.fromhex(sys.argv[2]), bytes.fromhex(sys.argv[3])
start = data.index(kind)
size = struct.unpack_from("<I", data, start + 4)[0]
at = data.index(old, start + 12, start + 12 + size)
data[at:at + len(old)] = new
struct.pack_into("<I", data, start + 12 + size, zlib.crc32(data[start:start + 12 + size]))
open("changed.cmt", "wb").write(data)
END
}
section() { python3 -c 'import sys; print(open("blocks.cmt", "rb").read().index(sys.argv[1].encode()))' "$1"; }
hex=$(od -An -v -tx1 blocks.cmt | tr -d ' \n')
totals=$(section TOTL)
change TOTL 0011 0012
verify changed.cmt
grep -qx "changed.cmt: offset $(printf 0x%x "$totals"): totals: events is 18, the events say 17" out || complain "totals: $(cat out)"
index=$(section INDX)
first=$(echo "$hex" | cut -c $((index * 2 + 25))-$((index * 2 + 28)))
change INDX "$first" "$(printf '%s%02x' "${first%??}" $((0x${first#??} ^ 2)))"
verify changed.cmt
grep -q "changed.cmt: offset $(printf 0x%x "$index"): the index does not name the blocks that there are" out || complain "index: $(cat out)"
tail=$(section TAIL)
change TAIL "$(printf %02x $((index % 256)))" "$(printf %02x $((index % 256 + 1)))"
verify changed.cmt
grep -q "changed.cmt: offset $(printf 0x%x "$tail"): no index where the tail says" out || complain "tail: $(cat out)"

# After damage in one block, the others are still checked. The second of two faults of one kind is only counted.
python3 - <<'END'
data = bytearray(open("blocks.cmt", "rb").read())
starts = [i for i in range(len(data)) if data[i:i + 4] == b"BLCK"]
assert len(starts) > 2
for start in starts[0], starts[2]: data[start + 14] ^= 1
open("changed.cmt", "wb").write(data)
END
verify changed.cmt
first=$(grep 'the checksum of a section is wrong' out)
grep -qx "changed.cmt: 1 more of the kind of ${first%: *}" out || complain "two damaged blocks: $(cat out)"

# Events that contradict each other are reported with their number, in any form.
cat >wrong.trace <<'END'
malloc(16) = 1000<1> time=5
malloc(16) = 1008<2> time=4
free(2000<1>)
malloc(8) = 1008<3>
END
verify wrong.trace
diff -u - out <<'END' || complain "wrong.trace"
wrong.trace:2: lies on a live block: that one ended first
wrong.trace:2: its time is before that of the event before: raised to that
wrong.trace:3: its tag contradicts the events before: dropped
wrong.trace:4: a block lives at this address already: ended first
END
trace2cmt -o mended.cmt wrong.trace 2>err
verify mended.cmt
[ "$status" = 0 ] || complain "what is made of wrong.trace: $(cat out)"

# The first fault of each kind is reported, the others are counted.
{ cat wrong.trace; for i in 1 2 3; do echo "malloc(8) = 1008<$((3 + i))>"; done; } >more.trace
verify more.trace
[ "$(wc -l <out)" = 5 ] && [ "$(tail -n 1 out)" = "more.trace: 3 more of the kind of more.trace:4" ] || complain "more.trace: $(cat out)"
printf 'malloc(8) = 10<2>\nmalloc(8) = 20<2>\nfree(30<2>)\nfree(10<2>)\nfoo\n' >tags.trace
verify tags.trace
grep -qx 'tags.trace:2: its tag contradicts the events before: dropped' out && grep -q 'tags.trace:5: expected' out ||
  complain "tags.trace: $(cat out)"
head -n 5 "$vectors/header.text" >cut.trace
verify cut.trace
[ "$status" = 1 ] && grep -qx 'cut.trace: the end of the trace is missing: it breaks off after its header' out || complain "a cut text: $(cat out)"

# --verify finds no fault in files that trace2cmt writes.
. "$SOURCE/tests/trace2cmt/every_kind.sh"
write_many 30000
trace2cmt -o many.cmt many.trace
trace2cmt -o slice.cmt --slice=5000:20000 many.cmt
trace2cmt -o thread.cmt --thread=2 many.cmt
trace2cmt -o part.cmt --slice=10us:12ms --thread=1,3 --anonymise many.cmt
trace2cmt -o joined.cmt many.cmt slice.cmt every_kind.trace many.trace 2>err
trace2cmt --to=legacy -o legacy.cmt many.cmt 2>err
for file in many.trace every_kind.trace many.cmt slice.cmt thread.cmt part.cmt joined.cmt legacy.cmt; do
  verify $file
  [ "$status" = 0 ] || complain "$file: $(head -n 3 out)"
done
status=0; trace2cmt --verify - <many.cmt >out || status=$?
[ "$status" = 0 ] && grep -q '^standard input: ok, 30,000 events in 1 block, ' out || complain "-: $(cat out)"
cat many.cmt | trace2cmt --verify | grep -q 'ok, 30,000 events' || complain "a pipe"

# Files that cannot be read, and wrong use.
verify missing
[ "$status" = 1 ] && [ "$(cat err)" = "trace2cmt: missing: No such file or directory" ] || complain "$(cat err)"
for wrong in "--verify --to=text t" "--verify -o x t" "--verify --info t" "--verify a b" "--json --verify t"; do
  status=0; trace2cmt $wrong >out 2>err || status=$?
  [ "$status" = 2 ] || complain "trace2cmt $wrong: $status"
done
exit $failed
