# format-spec/reports has a schema of each report, and reports fit their schemas. The commands of doc/reports.md work.

mkdir -p made
"$BUILD/tests/house/report_schemas" made
diff -ru "$SOURCE/format-spec/reports" made ||
  { echo "the reports have other fields than format-spec/reports: renew it with $BUILD/tests/house/report_schemas format-spec/reports" >&2; exit 1; }

golden=$SOURCE/tests/analysis/golden
for tool in cmtreport lifetimes overhead; do "$tool" --json "$golden/kinds.trace" >$tool.json 2>messages; done
trace2cmt -o kinds.cmt "$golden/kinds.trace" 2>messages
trace2cmt --info --json kinds.cmt >info.json
cmtreplay --verify --json --alloc=libc "$golden/readme_6655.trace" >verify.json 2>messages
/usr/bin/python3 "$SOURCE/tests/house/fits_schema.py" made cmtreport.json lifetimes.json overhead.json info.json verify.json

# The reports of cmtreplay fit too, also where figures are not known and null.
bump=$BUILD/cmtreplay/libexample_bump.so
faulty=$BUILD/tests/cmtreplay/libfaulty_at_size.so
cp "$golden/readme_6655.trace" one.trace
{ cat one.trace; echo 'malloc(66666) = 700000000<70000>'; } >two.trace
replay() { cmtreplay --json "$@" 2>messages || [ $? = 1 ] || { echo "$*: $(cat messages)" >&2; exit 1; }; }
mkdir fit
replay --runs=1 --alloc=libc,$bump,$faulty one.trace >fit/replay.json
replay --runs=1 --alloc=libc,$faulty two.trace >fit/death.json
replay --runs=1 --alloc=libc /dev/null >fit/empty.json
replay --verify --alloc=$faulty two.trace >fit/verify.json
replay --runs=1 --same-program --alloc=libc,$faulty one.trace two.trace >fit/same.json
replay --runs=1 --results=fit --alloc=libc,$faulty one.trace two.trace >fit/board.json
replay --verify --results=fit --alloc=libc,$faulty one.trace two.trace >fit/verified.json
replay --against=libc --alloc=$bump --fail-if=time+50% one.trace >fit/gate.json
cmtreplay --json --tune=memory --alloc=$bump,$faulty one.trace >fit/tune.json 2>messages || [ $? = 1 ]
cmtreplay --json --command='perl -e 1' --alloc=libc,$bump --runs=2 >fit/program.json 2>messages || [ $? = 1 ]
/usr/bin/python3 "$SOURCE/tests/house/fits_schema.py" made fit/*.json

command -v jq >/dev/null || { echo "skipped: jq is not here"; exit 77; }
cp kinds.cmt app.cmt
cp kinds.cmt old.cmt
sed -n 's/^    \$ //p' "$SOURCE/doc/reports.md" >commands
[ "$(wc -l <commands)" = 5 ] || { echo "doc/reports.md has no five commands" >&2; exit 1; }
while read -r command; do
  bash -o pipefail -c "$command" >out 2>messages || { echo "$command: $(cat messages)" >&2; exit 1; }
  [ -s out ] || { echo "$command: prints nothing" >&2; exit 1; }
done <commands
