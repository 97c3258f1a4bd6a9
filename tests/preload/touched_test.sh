# The pages of large blocks that a program has written to are recorded, and no others: by the program's own knowledge of them,
# by /proc/PID/smaps, and in time.

. "$SOURCE/tests/waiting.sh"
failed=0
complain() { echo "touched ($how, $*): $(cat said err 2>&1)" >&2; failed=1; }
# trace NAME=VALUE... PROGRAM ARGUMENT...: text traces in an empty folder t.
trace() {
  rm -rf t
  mkdir t
  env LD_PRELOAD="$TRACER" CMTTRACE_TOUCHED=16K CMTTRACE_OUT=t/%p.cmt "$@" >out 2>err || complain "exit $?"
  /usr/bin/python3 "$SOURCE/tests/preload/checks/await_closed.py" t/*
  for made in t/*; do trace2cmt --to=text "$made" >"${made%.cmt}.text" 2>said || complain 'no text'; done
}
check() { /usr/bin/python3 "$SOURCE/tests/preload/checks/touched_check.py" "$@" t/*.text >said || complain pages; }
program=$BUILD/tests/preload/touched

# Where blocks of 128 KiB are mapped anew, and as the C library has it, so that most memory is recycled.
for how in shapes threads handed fork end; do
  trace MALLOC_MMAP_THRESHOLD_=131072 "$program" $how
  check
  for stacks in ${CMT_DAILY:+0} 1; do
    trace CMTTRACE_STACKS=$stacks CMTTRACE_USABLE=$stacks "$program" $how
    check
  done
done

# Some of the blocks only, and those truly.
for how in shapes threads; do
  trace CMTTRACE_TOUCHED=auto "$program" $how
  check --bounded
done

# By the launcher.
how=launcher
rm -rf t
mkdir t
for option in '' --touched --touched=auto --touched=20K --touched=off; do
  cmttrace $option -o t/x.text "$program" shapes 2>err || complain "$option: exit $?"
  told=$(sed -n 's/^#cmt touched_min=//p' t/x.text)
  case $option in *20K) wanted=20480 ;; *off) wanted= ;; *) wanted=4096 ;; esac
  [ "$told" = "$wanted" ] || complain "$option: from $told, not $wanted"
done
# With a filter of system calls pages are recorded only if the setting is given.
filtered() { /usr/bin/python3 "$SOURCE/tests/preload/checks/with_filter.py" "$@"; }
if filtered true; then
  for wanted in '' 4096; do
    cmttrace ${wanted:+--touched=auto} -o t/x.text /usr/bin/python3 "$SOURCE/tests/preload/checks/with_filter.py" "$program" shapes 2>err ||
      complain "a filter: exit $?"
    told=$(sed -n 's/^#cmt touched_min=//p' t/x.text)
    [ "$told" = "$wanted" ] || complain "a filter: from $told, not $wanted"
  done
fi
! cmttrace --touched=much true 2>said || complain 'a size that is none'
grep -q -- '--touched' said || complain 'no message'

# Each piece of a MiB is recorded before the small block after it, or with the next piece. One of six runs has to show
# this, because a thread that waits long for a processor looks late.
for how in slow refused; do
  is_prompt=
  for run in 1 2 3 4 5 6; do
    [ -z "$is_prompt" ] || break
    trace "$program" $how
    check
    [ "$(grep -c ^touch t/*.text)" -ge 7 ] || continue
    awk -F'[(,]' '/^touch/ { pages += $4 } /^malloc\(7\)/ { n++; if (pages < (n - 1) * 256 - 1) exit 1 }' t/*.text && is_prompt=1
  done
  [ "$is_prompt" ] || complain 'pieces late'
done

# The kernel's figures for the mapping, with its first page and the page of the program's last read.
how=smaps
trace "$program" $how
check
kernel=$(awk '{ print $2 / 4 }' out)
told=$(awk -F'[(,]' '/^(touch|resident)/ { pages += $4 } END { print pages }' t/*.text)
[ $((kernel - told)) -ge 0 ] && [ $((kernel - told)) -le 4 ] || complain "the kernel has $kernel pages, told are $told"

# Pages that the program gives back, and touches again. The kernel keeps those of MADV_FREE until it needs them.
pages() { awk -F'[(,]' -v kind="$1" '$1 == kind { pages += $4 ? $4 : 64 } END { print pages + 0 }' t/*.text; }
for how in discard free; do
  trace "$program" $how
  ! grep -q . out || complain 'a call failed, or not'
  [ "$how" = discard ] && wanted=4 || wanted=0
  sum=$(($(pages touch) + $(pages resident)))
  [ $sum -eq $((64 + wanted)) ] || complain "$sum pages"
  case $how in
    discard) grep -Eq '^discard\([^,]*, 65536, 32768\)' t/*.text || complain 'no discard' ;;
    free) ! grep -q ^discard t/*.text || complain 'a discard' ;;
  esac
done

# Two of four huge pages, where the kernel has some.
how=huge
trace "$program" $how
if grep -q ' 4096 kB' out; then
  grep -q '^touch([^,]*, 2097152, 1, 2097152)' t/*.text && grep -q '^touch([^,]*, 2097152, 0, 6291456)' t/*.text ||
    complain 'no huge pages'
fi

# Large reservations, of which hardly anything is touched: at a free and at the end of the process, also within the time
# that "auto" allows. In one of six runs, because a thread that waits long for a processor has less of it.
how=reserve
for gib in 4 5; do
  for touched in auto 64K; do
    is_known=
    for run in 1 2 3 4 5 6; do
      [ -z "$is_known" ] || break
      trace CMTTRACE_TOUCHED=$touched "$program" reserve $gib
      grep -q none out && { echo "skipped: no memory to reserve $gib GiB"; break; }
      awk -F'[(,)<>]' '/^malloc/ && $2 > 2097152 { is_reserved[$4] = 1 }
        /^resident/ && $3 in is_reserved { if ($6 == 0) exit 1; bytes += $5 * $6 } END { if (bytes > 2097152) exit 1 }' \
        t/*.text && is_known=1
    done
    [ "$is_known" ] || grep -q none out || complain "$gib GiB, $touched: $(grep -E '^(touch|resident)' t/*.text | head -n 3)"
  done
done

# Nothing of smaller blocks, nor where it is off.
how=off
for size in 0 off 1G; do
  trace CMTTRACE_TOUCHED=$size "$program" shapes
  ! grep -qE '^(touch|resident)' t/*.text || complain "CMTTRACE_TOUCHED=$size"
done
exit $failed
