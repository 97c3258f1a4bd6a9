# Checks the pages that --plot writes in a browser: they draw and zoom, load nothing, leak nothing, and contain the
# numbers of the JSON. page_test.mjs has the checks.

skip() { echo "skipped: $*"; exit 77; }
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "chromium is not installed"
command -v node >/dev/null || skip "node is not installed"
[ -d "$SOURCE/node_modules/puppeteer-core" ] || skip "puppeteer-core is not installed (script/bootstrap --test)"

awk 'BEGIN {
  for (tag = 1; tag <= 6000; tag++) {
    printf "malloc(%d) = %x<%d> time=%d\n", 8 + tag * 37 % 500, 65536 + 512 * tag, tag, tag * 1000
    if (tag % 7 != 0 && tag > 50) printf "free(%x<%d>) time=%d\n", 65536 + 512 * (tag - tag % 50), tag - tag % 50, tag * 1000 + 500
  }
}' | awk '/^free/ { split($0, part, ")"); if (part[1] in seen) next; seen[part[1]] } { print }' >'<!--<script>.trace'

for tool in lifetimes overhead; do
  "$tool" --plot="$tool.html" --json '<!--<script>.trace' >"$tool.json" 2>err
  ! grep -q 'built without uPlot' err || skip "built without uPlot: $(cat err)"
done
overhead --plot=empty.html --json /dev/null >empty.json
printf 'malloc(8) = 1000<1>\n' | lifetimes --plot=one.html --json >one.json
NODE_PATH=$SOURCE/node_modules BROWSER=$browser exec node "$SOURCE/tests/page_test.mjs" lifetimes overhead empty one
