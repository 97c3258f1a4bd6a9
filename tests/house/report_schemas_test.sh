# doc/reports.md lists the fields that the reports have.

report_fields=$BUILD/tests/house/report_fields
"$report_fields" | diff -u "$SOURCE/doc/reports.md" - ||
  { echo "the reports have other fields than doc/reports.md: renew it with $report_fields >doc/reports.md" >&2; exit 1; }

# Every key that a run writes is in the list. `kinds` has the kinds of events as keys.
golden=$SOURCE/tests/analysis/golden
"$report_fields" | awk '/^## / { inside = $0 == "## cmt.report/1" } inside' |
  sed -n 's/^| `\([^`]*\)`.*/\1/; s/.*\.//; /^[a-z]/p' | sort -u >listed
cmtreport --json "$golden/kinds.trace" 2>messages | sed '/"numbers": {/,/}/d' |
  sed -n 's/^ *"\([a-z0-9_]*\)":.*/\1/p' | sort -u | comm -23 - listed >missing
[ ! -s missing ] || { echo "cmtreport: keys that are not in doc/reports.md: $(cat missing)" >&2; exit 1; }
for tool in lifetimes overhead; do
  "$report_fields" | awk -v head="## cmt.$tool/1" '/^## / { inside = $0 == head } inside' |
    sed -n 's/^| `\([^`]*\)`.*/\1/; s/.*\.//; /^[a-z]/p' | sort -u >listed
  "$tool" --json --plot=picture.svg "$golden/kinds.trace" 2>messages | sed '/"kinds": {/,/}/d' |
    sed -n 's/^ *"\([a-z0-9_]*\)":.*/\1/p' | sort -u | comm -23 - listed >missing
  [ ! -s missing ] || { echo "$tool: keys that are not in doc/reports.md: $(cat missing)" >&2; exit 1; }
done
