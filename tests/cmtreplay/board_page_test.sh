# A browser shows the page of a scoreboard without errors. board_page_test.mjs has the checks.
skip() { echo "skipped: $*"; exit 77; }
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "chromium is not installed"
command -v node >/dev/null || skip "node is not installed"
[ -d "$SOURCE/node_modules/puppeteer-core" ] || skip "puppeteer-core is not installed (script/bootstrap --test)"
calls() { for i in $(seq "$1"); do printf 'malloc(%d) = %d000<%d>\nfree(%d000<%d>)\n' "$2" "$i" "$i" "$i" "$i"; done; }
calls 40 5000 > '<script>window.broken=1<!--.trace'
calls 20 900 > z.trace
cp "$BUILD/cmtreplay/libexample_bump.so" '<b>.so'
cmtreplay --runs=2 --alloc='./<b>.so' --plot=board.html ./*.trace > table 2> words
! grep -q 'built without uPlot' words || skip "built without uPlot"
NODE_PATH=$SOURCE/node_modules BROWSER=$browser exec node "$SOURCE/tests/cmtreplay/board_page_test.mjs" board
