# Opens the page of a difference in a browser. diff_page_test.mjs has the checks.

skip() { echo "skipped: $*"; exit 77; }
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "chromium is not installed"
command -v node >/dev/null || skip "node is not installed"
[ -d "$SOURCE/node_modules/puppeteer-core" ] || skip "puppeteer-core is not installed (script/bootstrap --test)"

. "$SOURCE/tests/cmtreport/two_builds.sh"
cmtreport --diff=before.trace --json after.trace >difference.json
cmtreport --diff=before.trace -o difference.html after.trace
! grep -q 'interactive parts are missing' difference.html || skip "built without uPlot and flame-chart-js (script/bootstrap --test)"
NODE_PATH=$SOURCE/node_modules BROWSER=$browser exec node "$SOURCE/tests/cmtreport/diff_page_test.mjs" difference
