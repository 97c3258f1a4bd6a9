#include "csv_sink.h"

#include <array>
#include <charconv>

#include "toolkit/output/utf8.h"

namespace trace2cmt {
namespace {

constexpr std::size_t csv_buffer_bytes = 64 * 1024;
constexpr std::string_view line_end = "\r\n";

void append_number(std::string& out, std::uint64_t number) {
  std::array<char, 20> digits;
  out.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
}

/// In quotes always, so that an empty text differs from null.
void append_text(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : cmt::output::to_utf8(text)) out.append(c == '"' ? 2 : 1, c);
  out += '"';
}

}  // namespace

CsvSink::CsvSink(int fd) : output_(fd) {
  for (const ColumnSpec& column : event_columns) {
    if (!buffer_.empty()) buffer_ += ',';
    buffer_ += column.name;
  }
  buffer_ += line_end;
}

void CsvSink::put(const cmt::Event& event, const cmt::format::LiveBlock* old) {
  const EventRow row = rows_.next(event, old);
  for (std::size_t i = 0; i < row.numbers.size(); ++i) {
    if (event_columns[i].type == ColumnType::kind) {
      buffer_ += cmt::name(event.kind);
    } else if (row.numbers[i]) {
      append_number(buffer_, *row.numbers[i]);
    }
    buffer_ += ',';
  }
  if (row.label) append_text(buffer_, *row.label);
  buffer_ += line_end;
  if (buffer_.size() < csv_buffer_bytes) return;
  output_.write(buffer_);
  buffer_.clear();
}

void CsvSink::finish(const cmt::Repairs&, bool) {
  output_.write(buffer_);
  buffer_.clear();
}

}  // namespace trace2cmt
