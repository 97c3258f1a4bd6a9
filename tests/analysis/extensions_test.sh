# Checks the annotations that options add to the original's form. The golden files are named after the options.

golden=$SOURCE/tests/analysis/golden
failed=0
check() {  # check GOLDEN TOOL OPTION...
  local expected=$golden/extensions.$1; shift
  "$@" "$golden/extensions.trace" >out
  diff -u "$expected" out || { echo "$*: differs"; failed=1; }
}
check lifetimes.time lifetimes --clock=time --leaks
check lifetimes.bytes lifetimes --clock=bytes --totals --leaks
check overhead.time overhead --clock=time --page-size=1M
check overhead.bytes overhead --clock=bytes --totals --leaks --huge-pages --page-size=4096

# A trace with leaks appended is read as the one without.
lifetimes --leaks --totals "$golden/extensions.trace" | lifetimes >again
lifetimes "$golden/extensions.trace" | diff - again

refused() {  # refused STATUS WORDS TOOL OPTION...
  local status=0 expected=$1 words=$2; shift 2
  "$@" "$golden/readme_8.trace" >out 2>err || status=$?
  [ "$status" = "$expected" ] && grep -qF -- "$words" err || { echo "$*: exit $status, $(cat err)"; failed=1; }
}
for tool in lifetimes overhead; do
  refused 1 'readme_8.trace: times were not recorded (needed by --clock=time)' $tool --clock=time
  refused 2 '--clock: expected events, time or bytes, not '\''lines'\''' $tool --clock=lines
done
for size in 0 5 x 4T 4096K0 -4096 99999999999999999999; do
  refused 2 "--page-size: expected a power of two, not $size" overhead --page-size=$size
done
refused 2 '--page-size: more than 1024G: 1073741824G' overhead --page-size=1073741824G
exit $failed
