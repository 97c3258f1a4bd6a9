# doc/reports.md lists the fields that the reports have.

report_fields=$BUILD/tests/house/report_fields
"$report_fields" | diff -u "$SOURCE/doc/reports.md" - ||
  { echo "the reports have other fields than doc/reports.md: renew it with $report_fields >doc/reports.md" >&2; exit 1; }
