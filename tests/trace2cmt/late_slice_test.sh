# --slice of a .cmt begins to read at the origins before the slice, and writes the same bytes as from the start (which
# --strict reads). The same is true of lifetimes --by.

failed=0
complain() { echo "wrong: $*" >&2; failed=1; }
make_random="$BUILD/tests/format-spec/make_random"
decode="python3 -m cmt_trace"
export PYTHONPATH=$SOURCE/python PYTHONDONTWRITEBYTECODE=1
origins=1  # of each trace, of which the events around are sliced
[ -z "${CMT_DAILY:-}" ] || origins=3

# uses SLICE FILE: the output of lifetimes for the slice, in each form, with messages.
uses() {
  for form in "--by=function --json" "--by=size --clock=time --json" ${CMT_DAILY:+"--by=caller --clock=time" "--by=size --json"}; do
    lifetimes $form --slice=$1 "${@:3}" $2 2>&1 || echo "failed: $?"
  done
}

# Slices of random traces, with and without addresses, by events and by time, with one thread and two.
for addresses in none malloc ${CMT_DAILY:+reused random}; do
  "$make_random" 22000 250 ${#addresses} $addresses >$addresses.cmt
  # Blocks of the trace overlap, and its touched pages are anywhere. It has no other faults.
  ! trace2cmt --verify $addresses.cmt | grep -Ev 'names pages|gives back pages|lies on|begins where|more of the kind' ||
    complain "--verify $addresses.cmt"
  $decode --check $addresses.cmt 2>err | cmp - <(trace2cmt -s $addresses.cmt) || complain "cmt_trace $addresses.cmt: $(cat err)"
  $decode --sections $addresses.cmt >$addresses.sections
  [ "$(grep -c ' origin: ' $addresses.sections)" -ge 4 ] || complain "$addresses.cmt has few origins"
  last=$(trace2cmt -s $addresses.cmt | sed -n '/^#/d; s/.* time=\([0-9]*\).*/\1/p' | tail -n 1)
  starts=$(sed -n 's/.*events from \([1-9][0-9]*\): .*keyframe$/\1/p' $addresses.sections | shuf -n $origins --random-source=/dev/zero)
  for slice in 19000: 10000:10100 10000:10000 11234:17000 $((last / 2))ns:$((last / 2 + 5000))ns $((last - 900))ns: \
    $(for start in $starts; do echo $start:$((start + 1)) $((start - 1)):$((start + 3)) $((start + 1)):$((start + 900)); done); do
    trace2cmt -s --strict --slice=$slice $addresses.cmt >expected 2>err || complain "$addresses $slice --strict: $(cat err)"
    for jobs in 1 2; do
      trace2cmt -s --jobs=$jobs --slice=$slice $addresses.cmt >out 2>err || complain "$addresses $slice: $(cat err)"
      [ ! -s err ] || complain "$addresses $slice: $(cat err)"
      cmp out expected || complain "$addresses.cmt: --slice=$slice --jobs=$jobs is another"
    done
    uses $slice $addresses.cmt --strict >expected
    grep -q '"events": ' expected && ! grep 'failed:' expected || complain "lifetimes --slice=$slice --strict $addresses.cmt"
    for jobs in ${CMT_DAILY:+1} 2; do
      uses $slice $addresses.cmt --jobs=$jobs | cmp - expected || complain "$addresses.cmt: lifetimes --slice=$slice --jobs=$jobs is another"
    done
  done
  trace2cmt --slice=12000:15000 -o out.cmt $addresses.cmt
  trace2cmt --slice=12000:15000 --strict -o expected.cmt $addresses.cmt
  cmp out.cmt expected.cmt || complain "$addresses.cmt: --slice=12000:15000 as .cmt is another"
  status=0; trace2cmt -s --slice=30000: $addresses.cmt >out 2>err || status=$?
  [ "$status: $(cat err)" = "1: trace2cmt: $addresses.cmt: the trace ends before --slice=30000:" ] || complain "behind the end: $(cat err)"
  for options in --by=thread --by=phase "--by=size --clock=bytes"; do  # which origins do not tell
    lifetimes $options --json --slice=15000:16000 --strict $addresses.cmt >expected
    lifetimes $options --json --slice=15000:16000 $addresses.cmt | cmp - expected || complain "$addresses.cmt: lifetimes $options is another"
  done
  status=0; lifetimes --by=size --slice=30000: $addresses.cmt >out 2>err || status=$?
  [ "$status: $(grep -v 'events of pool' err)" = "1: lifetimes: $addresses.cmt: the trace ends before --slice=30000:" ] || complain "lifetimes behind the end: $(cat err)"
  trace2cmt -s --slice=19000: - <$addresses.cmt >out
  trace2cmt -s --slice=19000: $addresses.cmt | cmp - out || complain "$addresses.cmt from standard input is another"
  cat $addresses.cmt | trace2cmt -s --slice=19000: - | cmp - out || complain "$addresses.cmt from a pipe is another"
done

# damage OFFSET: writes damaged.cmt, a copy of $whole.cmt with other bytes at OFFSET.
whole=none
damage() { cat $whole.cmt >damaged.cmt; printf '\252\125\252\125' | dd of=damaged.cmt bs=1 seek=$(($1 + 12)) conv=notrunc status=none; }
stream() { sed -n "s/^ *\\(0x[0-9a-f]*\\)   $1: .*/\\1/p" $whole.sections | sed -n "$2"; }

# Damage before the origins does not matter. Damaged origins and a damaged index cost only time.
trace2cmt -s --strict --slice=19000: none.cmt >expected
index=$(sed -n 's/^ *\(0x[0-9a-f]*\) INDX.*/\1/p' none.sections)
for offset in $(stream core 3p) $(stream stack 5p) $(stream origin '$p') $index; do
  damage $offset
  trace2cmt -s --slice=19000:19900 damaged.cmt >out 2>err || complain "damage at $offset: $(cat err)"
  [ ! -s err ] || complain "damage at $offset: $(cat err)"
  trace2cmt -s --strict --slice=19000:19900 none.cmt | cmp - out || complain "damage at $offset: another slice"
done
# Damage before the origins does not matter for lifetimes, unless it hits the call that made a block which ends in the slice.
# A trace with events that origins do not have, of pools and of pages that were given back, is read from its begin.
whole=malloc
index=$(sed -n 's/^ *\(0x[0-9a-f]*\) INDX.*/\1/p' malloc.sections)
for offset in $(stream stack 5p) $(stream origin '$p') $index; do
  damage $offset
  for by in function size; do
    lifetimes --by=$by --json --slice=19000:19900 damaged.cmt 2>err | sed 's/"damaged.cmt"/"malloc.cmt"/' >out
    lifetimes --by=$by --json --slice=19000:19900 --strict malloc.cmt 2>/dev/null | cmp - out || complain "lifetimes, damage at $offset: $(cat err)"
  done
done
whole=none
# Damaged definitions of stacks do matter: the error names them.
damage $(stream 'stack definition' 2p)
status=0; trace2cmt -s --slice=19000: damaged.cmt >out 2>err || status=$?
[ $status = 0 ] || grep -q 'damaged.cmt: offset 0x.*: stack definition stream' err || complain "damaged definitions: $status $(cat err)"
# A file that breaks off after the origins has the whole events.
head -c $(($(stream core '$p') + 9)) none.cmt >cut.cmt
trace2cmt -s --slice=19000: cut.cmt >out 2>err
grep -q 'cut.cmt: the trace breaks off' err && grep -v '^#' out | cmp - <(grep -v '^#' expected | head -n $(grep -vc '^#' out)) || complain "cut off: $(cat err)"

# --verify reports origins that contradict the events.
python3 - <<'END' || complain "origins of another trace"
import subprocess
from cmt_trace import layout
data = open("none.cmt", "rb").read()
header = layout.file_header(data)
blocks = [layout.block_header(s) for s in layout.sections(data, header.size) if s.type == b"BLCK"]
found = [b for b in blocks if 8 in b.raw]
stream = next(s for s in found[-1].streams if s[0] == 8)
raw = bytearray(found[-1].raw[8].data)

def frame_of(raw):
    for level in range(1, 20):  # one as long as the frame that it replaces
        command = ["zstd", "-qc", "--check", f"--stream-size={len(raw)}", f"-{level}"]
        frame = subprocess.run(command, input=bytes(raw), capture_output=True).stdout
        if len(frame) == stream[2]:
            return frame


frame = None
for change in range(1, 64):  # of the time before
    changed = bytearray(raw)
    changed[0] ^= change
    frame = frame or frame_of(changed)
data = data[:stream[3]] + frame + data[stream[3] + stream[2]:]
open("lies.cmt", "wb").write(data)
END
status=0; trace2cmt --verify lies.cmt >out || status=$?
[ $status = 1 ] && grep -q ': the origins are not those of the blocks that the events before left alive$' out || complain "--verify: $status $(cat out)"
! $decode --check lies.cmt >/dev/null 2>err && grep -q 'the origins differ from the running state' err || complain "cmt_trace --check: $(cat err)"
exit $failed
