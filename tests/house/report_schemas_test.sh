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

command -v jq >/dev/null || { echo "skipped: jq is not here"; exit 77; }
cp kinds.cmt app.cmt
cp kinds.cmt old.cmt
sed -n 's/^    \$ //p' "$SOURCE/doc/reports.md" >commands
[ "$(wc -l <commands)" = 5 ] || { echo "doc/reports.md has no five commands" >&2; exit 1; }
while read -r command; do
  bash -o pipefail -c "$command" >out 2>messages || { echo "$command: $(cat messages)" >&2; exit 1; }
  [ -s out ] || { echo "$command: prints nothing" >&2; exit 1; }
done <commands
