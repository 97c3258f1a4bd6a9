// report_fields: prints doc/reports.md, the list of all fields of all reports in JSON, from their descriptions. A new
// report gets a line in main().

#include <cstdio>
#include <string>

#include "lifetimes/summary.h"
#include "overhead/summary.h"
#include "toolkit/output/fields.h"

namespace {

using cmt::output::FieldDoc;

constexpr const char* head = R"(# Reports in JSON

Every field of every report, printed by `tests/house/report_fields` from the descriptions in the code:

    cmake --build build/dev --target report_fields && build/dev/tests/house/report_fields >doc/reports.md

- A key ends with its unit: `_bytes`, `_ns`, `_pages`. Other numbers are counts.
- `a[].b` is the field `b` of each element of the array `a`; `a.b` is the field `b` of the object `a`.
- `tuples` is an array of arrays of numbers, in the order that the meaning gives. Of a histogram's tuple the first number is
  the least of its class.
- `or null`: the value is not known. `may be absent`: the key is left out in some reports.
)";

std::string type_text(const FieldDoc& field) {
  return field.type + (field.may_be_null ? " or null" : "") + (field.may_be_absent ? ", may be absent" : "");
}

/// The fields of one report, under the command that prints it.
template <class Report>
void print_report(const char* schema, const char* command) {
  std::printf("\n## %s\n\n`%s`\n\n| key | type | meaning |\n|---|---|---|\n", schema, command);
  for (const FieldDoc& field : cmt::output::list_fields<Report>()) {
    std::printf("| `%s` | %s | %s |\n", field.key.c_str(), type_text(field).c_str(), field.doc.c_str());
  }
}

}  // namespace

int main() {
  std::fputs(head, stdout);
  print_report<cmt::lifetimes::Summary>("cmt.lifetimes/1", "lifetimes --json");
  print_report<cmt::overhead::Summary>("cmt.overhead/1", "overhead --json");
}
