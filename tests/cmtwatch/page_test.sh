# Opens the pages of cmtwatch --plot in a browser: they draw and zoom, load and leak nothing, and contain the numbers of
# the JSON. tests/page_test.mjs has the checks.

. "$SOURCE/tests/cmtwatch/common.sh"
skip() { echo "skipped: $*"; exit 77; }
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "chromium is not installed"
command -v node >/dev/null || skip "node is not installed"
[ -d "$SOURCE/node_modules/puppeteer-core" ] || skip "puppeteer-core is not installed (script/bootstrap --test)"

grow=(perl -e 'for my $step (1..40) { push @kept, ("x" x 1000) x 2000; select undef, undef, undef, 0.002 }')
cmtwatch run --interval=1ms --max-cost=100 --plot=run.html --json -o run.json -- "${grow[@]}" 2>err
! grep -q 'built without uPlot' err || skip "built without uPlot: $(cat err)"
cmtwatch run --trace=run.cmt --interval=1ms --max-cost=100 --metric=rss --plot=traced.html --json -o traced.json -- "${grow[@]}"
cmtwatch run -r -v --trace='family.%p.cmt' --interval=1ms --max-cost=100 --plot=family.html -o family.text -- sh -c "perl -e '@a = (1) x 200000' & perl -e '@a = (1) x 300000; sleep 0' ; wait"
hold 8 30 4
cmtwatch get -r -v --count=20 --interval=1ms --max-cost=100 --plot=get.html -o get.text "$parent"
cmtwatch record -o r.db -r --count=20 --interval=1ms --max-cost=100 --plot=kinds.html "$parent"
let_go
cmtwatch compare --plot=compare.html --json run.json 'traced:traced.json' >compare.json
NODE_PATH=$SOURCE/node_modules BROWSER=$browser node "$SOURCE/tests/page_test.mjs" run traced family get kinds compare || failed=1
exit $failed
