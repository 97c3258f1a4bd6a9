#include "libcmt/trace/text_source.h"

#include <cstdlib>

#include "libcmt/text/parser.h"

namespace cmt {

void require_text(Input& input) {
  const std::string_view start = input.peek(4096).substr(0, 4096);
  const std::size_t nul = start.find('\0');
  if (nul != std::string_view::npos && (nul == 0 || start[nul - 1] != '\n')) {
    throw FormatError(input.name(), "neither a .cmt nor a text trace");
  }
}

TextSource::TextSource(std::unique_ptr<Input> input, DefectLog& log) : LineSource(std::move(input), log) {
  header_.format = Format::text;
  read_ahead();
}

/// The last line may lack its LF. Of a text with a header that line is what was cut, and could be read as another.
void TextSource::take_last(std::string_view line) {
  if (!header_.has_header || line.starts_with("#cmt end=")) take(line);
}

void TextSource::end() {
  if ((header_.has_header || !header_.metadata.empty()) && !ended_) truncated_ = true;
}

void TextSource::take(std::string_view line) {
  const text::Line& parsed = parser_.parse(line);
  switch (parsed.sort) {
    case text::Line::Sort::blank:
      return;
    case text::Line::Sort::metadata:
      return take_metadata(parsed);
    case text::Line::Sort::event:
      return add(parsed.event, text::without_annotation(line));
    case text::Line::Sort::wrong:
      return wrong("expected " + std::string(parsed.expected) + ": " + std::string(line.substr(0, 80)));
  }
}

/// "repairs" is their total, and stands before those of each kind.
void TextSource::take_repairs(std::string_view key, const std::string& value) {
  const std::uint64_t count = std::strtoull(value.c_str(), nullptr, 10);
  if (key == "repairs") repairs_.other = count;
  for (int i = 0; i < repair_count; ++i) {
    const auto repair = static_cast<Repair>(i);
    if (key != "repairs_" + std::string(name(repair)) || count > repairs_.other) continue;
    repairs_.add(repair, count);
    repairs_.other -= count;
  }
}

void TextSource::take_metadata(const text::Line& line) {
  if (line.key == "text") {
    if (line.value != "1") throw FormatError(place(), "text version " + line.value + "; this reader knows version 1");
    header_.has_header = true;
  } else if (line.key == "end") {
    ended_ = true;
    truncated_ = line.value != "complete";
  } else if (line.key.starts_with("repairs")) {
    take_repairs(line.key, line.value);
  } else if (any_event()) {
    wrong("metadata after the first event: dropped");
  } else if (header_.metadata.size() == text::metadata_limit) {
    throw FormatError(place(), "more than 1024 header lines");
  } else {
    header_.metadata.emplace_back(line.key, line.value);
  }
}

}  // namespace cmt
