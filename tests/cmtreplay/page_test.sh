# A browser shows the page of one trace's replay. Calls take milliseconds, so its axes of time are logarithmic.
# page_test.mjs has the checks.
skip() { echo "skipped: $*"; exit 77; }
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "chromium is not installed"
command -v node >/dev/null || skip "node is not installed"
[ -d "$SOURCE/node_modules/puppeteer-core" ] || skip "puppeteer-core is not installed (script/bootstrap --test)"
for i in $(seq 300); do printf 'malloc(5000) = %d000<%d> time=%d\nfree(%d000<%d>) time=%d\n' "$i" "$i" "${i}000" "$i" "$i" "${i}500"; done > t.trace
cmtreplay --runs=1 --alloc=libc --alloc="$BUILD/tests/cmtreplay/libclocked_by_locks.so" --plot=replay.html t.trace > table 2> words
! grep -q 'built without uPlot' words || skip "built without uPlot"
NODE_PATH=$SOURCE/node_modules BROWSER=$browser exec node "$SOURCE/tests/cmtreplay/page_test.mjs" replay
