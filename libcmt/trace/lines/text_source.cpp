// Reads a text trace. Names the known content of an input that is no trace.

#include "libcmt/trace/lines/text_source.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdlib>

#include "libcmt/text/parser.h"
#include "libcmt/text/utf8.h"

namespace cmt {

namespace {

struct Content {
  std::string_view start;
  std::string_view name;
  bool is_text = false;
};

constexpr std::array<Content, 29> contents{{
    {"\x89PNG", "a PNG image"},
    {"\xff\xd8\xff", "a JPEG image"},
    {"GIF8", "a GIF image"},
    {"%PDF-", "a PDF document"},
    {"\x7f"
     "ELF",
     "an ELF file"},
    {"!<arch>", "a static library"},
    {"PK\x03\x04", "a ZIP archive"},
    {"7z\xbc\xaf\x27\x1c", "a 7z archive"},
    {"\x1f\x8b", "gzip data in gzip data"},
    {"SQLite format 3", "an SQLite database"},
    {"PERFILE2", "a recording of perf"},
    {"PAR1", "a Parquet file"},
    {"\xff\xfe", "text in UTF-16"},
    {"\xfe\xff", "text in UTF-16"},
    {"desc: ", "a profile of valgrind's massif, which has no calls: valgrind --trace-malloc=yes logs them", true},
    {R"({"dhatFileVersion")", "a profile of valgrind's DHAT, which has no calls: valgrind --trace-malloc=yes logs them",
     true},
    {std::string_view("memray\0", 7),
     "a recording of memray, which is not read: cmttrace records the calls with their stacks"},
    {"heap_v2/", "a heap profile of jemalloc, which has samples and no calls: cmttrace records them", true},
    {"heap profile: ", "a heap profile of gperftools, which has no calls: cmttrace records them", true},
    {"#!", "a script", true},
    {"#include", "C or C++ source", true},
    {"#pragma", "C or C++ source", true},
    {"#ifndef", "C or C++ source", true},
    {"//", "C or C++ source", true},
    {"/*", "C or C++ source", true},
    {"<", "HTML or XML", true},
    {"{", "JSON", true},
    {"[{", "JSON", true},
    {"diff --git", "a patch", true},
}};

const Content* find_content(std::string_view start) {
  const auto* const found = std::find_if(contents.begin(), contents.end(),
                                         [&](const Content& each) { return start.starts_with(each.start); });
  return found == contents.end() ? nullptr : found;
}

}  // namespace

std::string_view content_name(std::string_view start) {
  const Content* const found = find_content(start);
  return found == nullptr ? std::string_view() : found->name;
}

void require_text(Input& input) {
  const std::string_view start = input.peek(4096).substr(0, 4096);
  const std::size_t nul = start.find('\0');
  const Content* const content = find_content(start);
  const bool is_known = content != nullptr && !content->is_text;
  if (!is_known && (nul == std::string_view::npos || (nul != 0 && start[nul - 1] == '\n'))) return;
  throw FormatError(input.name(), "neither a .cmt nor a text trace" +
                                      (is_known ? ": it looks like " + std::string(content->name) : ""));
}

namespace {

/// Parses a line that is not common. Leaves it to the source if its meaning depends on the lines before.
void parse_line(text::Parser& parser, std::string_view line, std::uint64_t number, LinePiece& piece) {
  if (!text::StackLineReader::is_definition(line)) {
    const text::Line& parsed = parser.parse(line);
    if (parsed.sort == text::Line::Sort::blank && !text::take_stretch(line)) return;
    if (parsed.sort == text::Line::Sort::event && parsed.event.label.empty() && !is_of_sampling(parsed.event.kind)) {
      piece.events.push_back(parsed.event);
      piece.lines.push_back(text::without_annotation(line));
      piece.lines_are_plain &= text::is_plain(piece.lines.back());
      piece.line_numbers.push_back(number);
      return;
    }
  }
  piece.others.push_back({piece.events.size(), number, line});
}

void parse_lines(LinePiece& piece) {
  text::Parser parser;
  std::uint64_t number = piece.first_line;
  for (std::string_view lines = piece.text; !lines.empty();) {
    ++number;
    std::size_t length = text::parse_plain(lines, piece.events.emplace_back());
    if (length != 0) {
      piece.lines.push_back(lines.substr(0, length));
      piece.line_numbers.push_back(number);
    } else {
      piece.events.pop_back();
      length = lines.find('\n');
      parse_line(parser, lines.substr(0, length), number, piece);
    }
    assert(length < lines.size() && lines[length] == '\n');
    lines.remove_prefix(length + 1);
  }
}

}  // namespace

TextSource::TextSource(std::unique_ptr<Input> input, const ReadOptions& options, DefectLog& log)
    : LineSource(std::move(input), log, options.threads, parse_lines), wants_stacks_(options.stacks) {
  header_.format = Format::text;
  read_ahead();
}

/// The last line may lack its LF. In a text with a header, such a line was cut, and its rest could be another valid
/// line.
void TextSource::take_last(std::string_view line) {
  if (!header_.has_header || line.starts_with("#cmt end=")) take(line);
}

void TextSource::end() {
  if ((header_.has_header || !header_.metadata.empty()) && !ended_) truncated_ = true;
}

/// An event of sampling in a text: its trace would look like one of all blocks.
static void refuse_samples(const std::string& place) {
  throw FormatError(place, "a text trace is never sampled: read the .cmt that it was made from");
}

/// Replaces the text's number of an event's stack by the table's number.
void TextSource::take_stack(Event& event) {
  header_.has_stacks = true;
  const StackId number = std::exchange(event.stack, 0);
  const KindTraits& kind = traits(event.kind);
  if (!wants_stacks_ || number == 0 || (!kind.allocates && !kind.releases && !is_of_pool(event.kind))) return;
  event.stack = stack_lines_.find(number);
  if (event.stack == 0) wrong("the stack " + std::to_string(number) + " is not defined: left out");
}

void TextSource::take(std::string_view line) {
  if (wants_stacks_ && text::StackLineReader::is_definition(line)) {
    const std::string_view expected = stack_lines_.take(line);
    if (!expected.empty()) wrong("expected " + std::string(expected) + ": " + std::string(line.substr(0, 80)));
    return;
  }
  if (const auto stretch = text::take_stretch(line); stretch && stretches_.size() < stretches_limit) {
    stretches_.push_back(*stretch);
    return;
  }
  const text::Line& parsed = parser_.parse(line);
  Event event;
  switch (parsed.sort) {
    case text::Line::Sort::blank:
      return;
    case text::Line::Sort::metadata:
      return take_metadata(parsed);
    case text::Line::Sort::event:
      event = parsed.event;
      if (is_of_sampling(event.kind)) refuse_samples(place());
      if (is_of_pool(event.kind) && !newest_pool_block_.takes(event))
        return log_.report(place(), "a block of a pool that contradicts the lines before: left out",
                           Repair::contradiction);
      if (event.stack != 0) take_stack(event);
      return add(event, text::without_annotation(line));
    case text::Line::Sort::wrong:
      return wrong("expected " + std::string(parsed.expected) + ": " + std::string(line.substr(0, 80)));
  }
}

/// "repairs" is the total, and comes before the numbers of each kind.
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
  } else if (line.key == "sampled") {
    refuse_samples(place());
  } else {
    header_.metadata.emplace_back(line.key, line.value);
  }
}

}  // namespace cmt
