# Checks --plot: files of all four forms, the same bytes every time, and one clear line for a picture that cannot be drawn.

failed=0
complain() { echo "$*" >&2; failed=1; }

awk 'BEGIN {
  srand(5)
  for (event = 1; event <= 20000; event++) {
    if (live < 400 || rand() < 0.49) {
      block[live++] = sprintf("%x<%d>", 65536 + 96 * (event % 3000), event)
      if (block[live - 1] in used) { live--; continue }
      printf "malloc(%d) = %s\n", 1 + rand() * 90, block[live - 1]
    } else {
      pick = int(rand() * live)
      printf "free(%s)\n", block[pick]
      block[pick] = block[--live]
    }
  }
}' >a.trace

for tool in lifetimes overhead; do
  # A picture alone says nothing else; beside a summary both are there.
  "$tool" --plot=a.svg a.trace >out 2>err
  [ ! -s out ] || complain "$tool --plot prints"
  grep -q '^<svg ' a.svg && [ "$(tail -c 7 a.svg)" = "</svg>" ] || complain "$tool: not an SVG"
  "$tool" --plot=b.svg --summary a.trace 2>/dev/null | cmp - <("$tool" --summary a.trace 2>/dev/null) ||
    complain "$tool: the summary differs"
  cmp a.svg b.svg || complain "$tool: another run, another picture"
  "$tool" --plot=a.html a.trace 2>/dev/null
  "$tool" --plot=b.html a.trace 2>/dev/null
  cmp a.html b.html || complain "$tool: another run, another page"
  grep -q '^<!DOCTYPE html>' a.html || complain "$tool: not a page"

  # A shorter picture takes the place of a longer one, whole.
  printf 'malloc(8) = 1000<1>\n' | "$tool" --plot=a.svg
  [ "$(tail -c 7 a.svg)" = "</svg>" ] && [ "$(grep -c '</svg>' a.svg)" = 1 ] || complain "$tool: rests of the old picture"
  # Pictures of nothing.
  "$tool" --plot=none.svg /dev/null
  grep -q 'nothing to show' none.svg || complain "$tool: an empty picture does not say so"
  "$tool" --plot=none.html /dev/null

  # Pictures that cannot be drawn are refused.
  status=0; "$tool" --plot=a.gif a.trace 2>err || status=$?
  [ "$status" = 2 ] && grep -qF "$tool: --plot: expected a name that ends in .svg, .html, .png or .pdf, not a.gif" err ||
    complain "a wrong ending: exit $status, $(cat err)"
  status=0; "$tool" --plot=no/such.svg a.trace 2>err || status=$?
  [ "$status" = 1 ] && [ "$(cat err)" = "$tool: no/such.svg: No such file or directory" ] || complain "no folder: $(cat err)"
  cp a.trace own.svg
  status=0; "$tool" --plot=own.svg own.svg 2>err || status=$?
  [ "$status" = 2 ] && cmp -s own.svg a.trace || complain "its own trace: $status $(cat err)"
  ln -sf /dev/full full.svg
  status=0; "$tool" --plot=full.svg a.trace 2>err || status=$?
  [ "$status" = 1 ] && grep -q "^$tool: full.svg: No space left on device$" err || complain "full disk: $(cat err)"
  status=0; "$tool" --plot=left.svg no-such-file 2>err || status=$?
  [ "$status" = 1 ] && [ ! -e left.svg ] || complain "$tool: a file without a picture is left over"
  status=0; "$tool" --plot=a.svg --leaks a.trace 2>err || status=$?
  [ "$status" = 2 ] && grep -qF -- '--leaks does not go with --plot' err || complain "--leaks: exit $status, $(cat err)"

  # Without the converter svg and html are made, and for the others it is named.
  mkdir -p only
  ln -sf "$(command -v "$tool")" "only/$tool"
  status=0; PATH=$PWD/only "$tool" --plot=a.png a.trace 2>err || status=$?
  [ "$status" = 1 ] && grep -q "^$tool: a.png: png and pdf need rsvg-convert (Debian: librsvg2-bin)" err && [ ! -e a.png ] ||
    complain "no converter: exit $status, $(cat err)"
  PATH=$PWD/only "$tool" --plot=a.svg a.trace 2>/dev/null || complain "an SVG needs another program"
done

# The JSON has what the picture shows, and only then.
overhead --json --plot=a.svg a.trace 2>/dev/null | grep '"address_map"' >/dev/null || complain "no map in the JSON"
! overhead --json a.trace 2>/dev/null | grep '"address_map"' >/dev/null || complain "a map in the JSON without --plot"
# The x axis of the picture is by the clock asked for; where the trace has no times it cannot be time.
awk '{ print $0 " time=" 1000000 * NR }' a.trace >timed.trace
for axis in 'events events' 'time time' 'bytes bytes allocated'; do
  overhead --clock="${axis%% *}" --plot=axis.svg timed.trace 2>/dev/null && grep -q ">${axis#* }<" axis.svg ||
    complain "--clock=${axis%% *} is not the x axis"
done
status=0; overhead --clock=time --plot=axis.svg a.trace 2>err || status=$?
[ "$status" = 1 ] && grep -q '^overhead: a.trace: times were not recorded (needed by --clock=time)' err ||
  complain "no times: exit $status, $(cat err)"

# Many runs in one picture.
for i in 1 2; do lifetimes --json a.trace >"$i.json" 2>/dev/null; done
lifetimes --merge --plot=merged.svg 1.json 2.json
grep -q '<title>2 traces</title>' merged.svg || complain "no picture of merged summaries"

if command -v rsvg-convert >/dev/null; then
  for tool in lifetimes overhead; do
    "$tool" --plot="$tool.png" a.trace 2>/dev/null
    [ "$(head -c 4 "$tool.png" | tail -c 3)" = PNG ] || complain "$tool: not a PNG"
    "$tool" --plot="$tool.pdf" a.trace 2>/dev/null
    [ "$(head -c 4 "$tool.pdf")" = %PDF ] || complain "$tool: not a PDF"
  done
  status=0; ln -sf /dev/full full.png; overhead --plot=full.png a.trace 2>err || status=$?
  [ "$status" = 1 ] && grep -q '^overhead: full.png: No space left on device$' err || complain "full disk: $(cat err)"
  overhead --plot=again.pdf a.trace 2>/dev/null
  cmp again.pdf overhead.pdf || complain "another run, another PDF"
else
  echo "rsvg-convert is not installed: png and pdf are not tested"
fi
exit $failed
