# --info: the facts about a file, the same for any form and from a pipe. For a whole .cmt, no event is decoded.

failed=0
complain() { echo "wrong: $*" >&2; failed=1; }
. "$SOURCE/tests/trace2cmt/every_kind.sh"
trace2cmt -o every_kind.cmt every_kind.trace
cp "$SOURCE/format-spec/vectors/blocks.cmt" .

trace2cmt --info every_kind.cmt >out 2>err
size=$(stat -c %s every_kind.cmt)
sed -E "s/^every_kind.cmt: cmt, 22 events in $size bytes, [0-9.]* an event$/FIRST/; s/( +[0-9,.]+)+$//" out >shape
trace2cmt --info --color=always every_kind.cmt 2>err | grep -q $'^\e\\[1m  kind  *events\e\\[0m$' || complain "no bold heading"
diff -u - shape <<'END' || complain "the words of --info"
FIRST
  program      app, \"deep\"
  recorded     calls, addresses, times, usable sizes
  last event   at 44 ns
  threads
  allocated    4.00 GiB in 9 blocks
  peak live    4.00 GiB at event
  most live    7 blocks at once
  live at end  4.00 GiB in 5 blocks
  refused
  repairs
  kind                   events
  malloc
  free
  calloc
  realloc
  posix_memalign
  operator_new
  operator_delete_sized
  thread_exit
  thread_name
  mark
  sample
  stream        before zstd  bytes  before, an event  an event
  core
  addresses
  times
  usable_sizes
  the rest
  in 1 block of the stream, with 1 keyframe
END
[ ! -s err ] || complain "$(cat err)"

# The figures are the same for .cmt, text, and through a pipe. Streams and the rest add up to the file.
check='
import json, sys
of = {name: json.load(open(name)) for name in sys.argv[1:]}
for name, info in of.items():
    assert info["schema"] == "cmt.info/1" and list(info)[0] == "schema", info
    assert sum(info["by_kind"].values()) == info["events"], info
    if "streams" in info:
        assert sum(s["bytes"] for s in info["streams"]) + info["other_bytes"] == info["file_bytes"], info
for key in ("events", "by_kind", "failed_calls", "threads", "allocated_blocks", "allocated_bytes", "peak_live_blocks",
            "peak_live_bytes", "peak_live_bytes_event", "end_live_blocks", "end_live_bytes", "metadata", "has_times", "last_time_ns"):
    assert len({json.dumps(info[key]) for info in of.values()}) == 1, (key, [info[key] for info in of.values()])
print(*(info["totals_stated"] for info in of.values()), *("streams" in info for info in of.values()))'
trace2cmt --info --json every_kind.cmt >a.json
trace2cmt --info --json every_kind.trace >b.json
cat every_kind.cmt | trace2cmt --info --json - >c.json
trace2cmt --info --json <every_kind.trace >d.json
[ "$(python3 -c "$check" a.json b.json c.json d.json)" = "True False True False True False True False" ] || complain "figures"

# A cut file is read to its last whole block.
head -c 400 blocks.cmt >cut.cmt
trace2cmt --info --json cut.cmt >cut.json
trace2cmt -s cut.cmt 2>/dev/null | trace2cmt --info --json >text.json
python3 - <<'END' || complain "a cut file"
import json
cut, text = json.load(open("cut.json")), json.load(open("text.json"))
assert cut["cut_off"] and not cut["totals_stated"] and 0 < cut["events"] == text["events"] < 17, cut
assert cut["stream_blocks"] > 0 and cut["streams"][0]["name"] == "core", cut
END
trace2cmt --info cut.cmt | grep -qx '  breaks off: the figures are of what is whole' || complain "a cut file does not say so"

# If the blocks are whole but their events are damaged, --info shows the figures that the file states.
python3 - <<'END'
data = bytearray(open("blocks.cmt", "rb").read())
frame = data.index(b"\x28\xb5\x2f\xfd")
data[frame + 8] ^= 255
open("damaged.cmt", "wb").write(data)
END
trace2cmt --info --json blocks.cmt | sed 's/blocks.cmt/X/' >whole.json
trace2cmt --info --json damaged.cmt | sed 's/damaged.cmt/X/' | cmp - whole.json || complain "events were decoded"
status=0; trace2cmt --verify damaged.cmt >out || status=$?
[ "$status" = 1 ] || complain "a damaged frame passes for whole"

# Damage in the parts that --info reads is reported with the place in the file.
python3 - <<'END'
import struct, zlib
def change(name, at, new):
    changed = bytearray(data)
    changed[at:at + len(new)] = new
    size = struct.unpack_from("<I", changed, start + 4)[0]
    struct.pack_into("<I", changed, start + 12 + size, zlib.crc32(changed[start:start + 12 + size]))
    open(name, "wb").write(changed)
data = open("blocks.cmt", "rb").read()
start = data.rindex(b"BLCK")
change("flag.cmt", start + 12 + data[start + 12:].index(data[start + 12:start + 13]), b"\xff" * 9 + b"\x7f")
start = data.index(b"INDX")
change("index.cmt", start + 13, bytes([data[start + 13] ^ 2]))
END
for file in flag index; do
  status=0; trace2cmt --info $file.cmt >out 2>err || status=$?
  [ "$status" = 1 ] && [ ! -s out ] && grep -qE "^trace2cmt: $file.cmt: offset 0x[0-9a-f]+: " err ||
    complain "$file.cmt: $status, $(cat out err)"
done

for wrong in "--info --to=text t" "--info -o x t" "--json t" "--info a b"; do
  status=0; trace2cmt $wrong >out 2>err || status=$?
  [ "$status" = 2 ] || complain "trace2cmt $wrong: $status"
done
# Most blocks at once, and the old key. The peak of live bytes has other blocks.
printf 'malloc(1) = 10<1>\nmalloc(1) = 20<2>\nfree(10<1>)\nfree(20<2>)\nmalloc(9) = 30<3>\n' >most.trace
[ "$(trace2cmt --info --json most.trace | grep -c '"\(most\|peak\)_live_blocks": 2')" = 2 ] || complain "most_live_blocks"
! command -v lifetimes >/dev/null || [ "$(lifetimes --json most.trace | grep '"peak_live_blocks"' | tr -d ' ,')" = '"peak_live_blocks":1' ] || complain "peak_live_blocks"

exit $failed
