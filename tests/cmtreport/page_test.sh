# Opens two pages in a browser: of a made-up report with hostile names, and of a report by cmtreport. page_test.mjs has the
# checks.

skip() { echo "skipped: $*"; exit 77; }
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "chromium is not installed"
command -v node >/dev/null || skip "node is not installed"
[ -d "$SOURCE/node_modules/puppeteer-core" ] || skip "puppeteer-core is not installed (script/bootstrap --test)"
tools=$BUILD/tests/cmtreport

awk 'BEGIN {
  for (tag = 1; tag <= 6000; tag++) {
    printf "malloc(%d) = %x<%d> time=%d%s\n", 8 + tag * 37 % 500, 65536 + 512 * tag, tag, tag * 1000, tag % 3 == 0 ? " thread=1" : ""
    if (tag % 7 != 0 && tag > 50) printf "free(%x<%d>) time=%d\n", 65536 + 512 * (tag - tag % 50), tag - tag % 50, tag * 1000 + 500
  }
}' | awk '/^free/ { split($0, part, ")"); if (part[1] in seen) next; seen[part[1]] } { print }' >'<img src=x>.trace'
cp "$BUILD/cmtreplay/libexample_bump.so" '<b>.so'
overhead --plot=o.html --json '<img src=x>.trace' >overhead.json
cmtreplay --alloc=libc --alloc='./<b>.so' --runs=2 --json '<img src=x>.trace' >replay.json
cmtwatch run --json -o watch.json -- true
python3 "$SOURCE/tests/cmtreport/made_up_report.py" 400 replay.json watch.json overhead.json >made-up.json
"$tools/page_of_report" <made-up.json >made-up.html
others="--overhead=overhead.json --replay=replay.json --watch=watch.json"
cmtreport $others --json '<img src=x>.trace' >recorded.json
SOURCE_DATE_EPOCH=5 cmtreport $others -o recorded.html '<img src=x>.trace'
! grep -q 'interactive parts are missing' made-up.html || skip "built without uPlot and flame-chart-js (script/bootstrap --test)"
NODE_PATH=$SOURCE/node_modules BROWSER=$browser exec node "$SOURCE/tests/cmtreport/page_test.mjs" made-up recorded
