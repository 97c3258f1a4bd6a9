// Writes the rows of event_rows.h as RFC 4180 defines them: a line of names, CRLF, texts in quotes, an empty field for
// null.

#include "libcmt/text/format.h"
#include "toolkit/output/fields.h"
#include "trace2cmt/sinks/event_rows.h"
#include "trace2cmt/sinks/sink.h"

namespace cmt::trace2cmt {
namespace {

constexpr std::string_view line_end = "\r\n";

class CsvSink : public LedgerSink {
 public:
  explicit CsvSink(int fd) : output_(fd) {
    for (const ColumnSpec& column : event_columns) {
      if (!output_.text().empty()) output_.text() += ',';
      output_.text() += column.name;
    }
    output_.text() += line_end;
  }

  void finish(const cmt::Repairs&, bool) override { output_.flush(); }

 private:
  void write_event(const cmt::Event& event, const cmt::format::LiveBlock* old) override {
    const EventRow row = rows_.next(event, old);
    std::string& out = output_.text();
    for (std::size_t i = 0; i < row.numbers.size(); ++i) {
      if (event_columns[i].type == ColumnType::kind) {
        out += cmt::name(event.kind);
      } else if (row.numbers[i]) {
        cmt::text::append_number(out, *row.numbers[i]);
      }
      out += ',';
    }
    // A label is always in quotes, so that an empty label differs from null.
    if (row.label) out += cmt::output::csv_quoted(*row.label);
    out += ',';
    if (row.pool_block) cmt::text::append_number(out, *row.pool_block);
    out += line_end;
    output_.flush_if_full();
  }

  BufferedOutput output_;
  EventRows rows_;
};

std::unique_ptr<Sink> make_csv_sink(SinkSettings settings) { return std::make_unique<CsvSink>(settings.fd); }

}  // namespace

extern const OutputForm csv_form{"csv", "", make_csv_sink};

}  // namespace cmt::trace2cmt
