/// The outline that lifetimes and overhead share. Both read one trace and either annotate its lines or summarise it, as
/// text, JSON, CSV or a picture. A tool adds options of its own, an annotator, and a described summary with to_text(),
/// to_csv() and to_picture() in its namespace.
#pragma once

#include <unistd.h>

#include <cassert>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cmt/reader.h"
#include "libcmt/heap/address_index.h"
#include "libcmt/heap/clock.h"
#include "libcmt/trace/files.h"
#include "toolkit/annotate/read_ahead.h"
#include "toolkit/command/command_line.h"
#include "toolkit/command/complaints.h"
#include "toolkit/output/fields.h"
#include "toolkit/output/numbers.h"
#include "toolkit/picture/picture.h"

namespace cmt::annotate {

/// The options of both tools.
struct Options {
  enum class Form { text, json, csv };

  std::string tool;         ///< begins each message
  bool summarises = false;  ///< rather than annotates
  std::string path = "-";
  heap::Clock::Unit clock = heap::Clock::Unit::events;
  Form form = Form::text;  ///< of a summary
  bool leaks = false;
  bool totals = false;
  bool strict = false;
  std::string plot{};  ///< the picture's file; empty: no picture
  bool prints = true;  ///< the summary too, or only a picture
};

/// The options of both tools, and those that only one has.
std::vector<command::Option> known_options(std::vector<command::Option> own);

/// All options but the path. `annotation_only` are those that do not go with a summary. Throws UsageError.
Options parse_options(const std::string& tool, const command::CommandLine& line,
                      std::initializer_list<const char*> annotation_only);

/// The trace that the options name. The first of its defects go to standard error, and a line where it breaks off.
class Trace {
 public:
  /// Borrows `options`. `addresses` and `stacks`: whether events have them. Throws FormatError where ages are to be
  /// counted in time and the trace has none.
  explicit Trace(const Options& options, bool addresses = true, bool stacks = false);

  /// Calls `visit` with every event and its index in the batch. Where it returns false, the rest is not read.
  template <class Visit>
  void for_each(Visit visit) {
    for (auto events = reader_.read(); !events.empty(); events = reader_.read()) {
      is_empty_ = false;
      for (std::size_t i = 0; i < events.size(); ++i) {
        if constexpr (std::is_same_v<decltype(visit(events[i], i)), bool>) {
          if (!visit(events[current_ = i], i)) return;
        } else {
          visit(events[current_ = i], i);
        }
      }
    }
    say_what_is_missing();
  }

  /// The same of all events, which another thread decodes where the trace is a .cmt. `fetch(event, is_near)` is called
  /// some events before `visit`, and once more nearer to it, so that memory can be fetched into the cache.
  template <class Fetch, class Visit>
  void for_each_ahead(Fetch fetch, Visit visit) {
    if (header().format != Format::cmt) return for_each([&](const Event& event, std::size_t) { visit(event); });
    constexpr std::size_t farthest = 48, far = 20, near = 8;  // events
    ReadAhead ahead(reader_);                                 // a .cmt has no defects that are told while it is read
    for (auto events = ahead.read(); !events.empty(); events = ahead.read()) {
      is_empty_ = false;
      first_ahead_ = ahead.first_event();
      for (std::size_t i = 0; i < events.size(); ++i) {
        if (i + farthest < events.size()) {
          __builtin_prefetch(&events[i + farthest]);  // from the other thread's cache
          __builtin_prefetch(&events[i + farthest].stack);
        }
        if (i + far < events.size()) fetch(events[i + far], false);
        if (i + near < events.size()) fetch(events[i + near], true);
        visit(events[current_ = i]);
      }
    }
    first_ahead_.reset();
    say_what_is_missing();
  }

  /// The line of an event: as it is in the input, or else, also where it holds characters that a terminal would obey,
  /// in canonical form. Valid until the next call.
  std::string_view line(const Event& event, std::size_t i);

  command::Complaints& complaints() { return complaints_; }
  const Header& header() const { return reader_.header(); }
  const StackTable& stacks() const { return reader_.stacks(); }
  bool truncated() const { return reader_.truncated(); }
  /// What a whole .cmt states of itself. Complete at the end.
  const std::optional<Totals>& totals() const { return reader_.totals(); }

 private:
  void say(const std::string& message) const { command::complain(options_.tool, message); }
  void say_what_is_missing() const;
  std::string place() const;
  std::string name() const;

  const Options& options_;
  bool is_empty_ = true;                      // as far as it was read
  std::size_t current_ = 0;                   // the event that is visited, in its batch
  std::optional<std::uint64_t> first_ahead_;  // the number of the first of a batch that was read ahead
  std::string own_line_;
  command::Complaints complaints_;
  Reader reader_;
};

/// The first block that a trace makes. Its tag tells the end of a block from before the trace, which is no defect, from
/// the end of one that has ended already.
class FirstTag {
 public:
  void note(Tag tag) {
    if (tag_ == 0) tag_ = tag;
  }
  bool is_made_here(Tag tag) const { return tag_ != 0 && tag >= tag_; }

 private:
  Tag tag_ = 0;
};

/// A trace as text whose lines carry annotations. An annotation follows " # ", in column 50 or after a longer line:
///
///     free(81d3b83a0<6656>)                             # 16 bytes, allocated 1 lines ago
///
/// Lines are collected in a buffer that is written in pieces of 256 KiB; a number costs some 5 ns. An annotation has at
/// most 1 KiB.
class AnnotatedText {
 public:
  /// Borrows `fd`.
  explicit AnnotatedText(int fd);

  /// Begins a line. The calls that follow append to it until end_line().
  void begin_line(std::string_view line) {
    if (room() < line.size() + width + annotation_max) flush();
    if (room() < line.size() + width + annotation_max) return out_.write(line);
    text(line);
  }

  /// A line without an annotation.
  void plain_line(std::string_view line) {
    begin_line(line);
    end_line();
  }

  /// Begins a line that has one.
  void begin_annotated_line(std::string_view line) {
    begin_line(line);
    for (std::size_t column = line.size(); column < width; ++column) *at_++ = ' ';
    text(" # ");
  }

  void text(std::string_view words) {
    assert(words.size() <= room());
    std::memcpy(at_, words.data(), words.size());
    at_ += words.size();
  }

  void decimal(std::uint64_t number) { at_ = std::to_chars(at_, end(), number).ptr; }
  void signed_decimal(std::int64_t number) { at_ = std::to_chars(at_, end(), number).ptr; }
  void hex(std::uint64_t number) { at_ = std::to_chars(at_, end(), number, 16).ptr; }

  /// "16 bytes, allocated 1 lines" or "allocated 3.05 s": how large a block is and how long it has lived by the clock.
  void block_age(std::uint64_t size, std::uint64_t born, const heap::Clock& clock) {
    decimal(size);
    text(" bytes, allocated ");
    const std::uint64_t age = clock.now() - born;
    if (clock.unit() == heap::Clock::Unit::time) return text(output::time_text(static_cast<double>(age)));
    decimal(age);
    text(" ");
    text(clock.unit_text());
  }

  /// "live 16 bytes in 2 blocks".
  void live_totals(std::uint64_t bytes, std::uint64_t blocks) {
    text("live ");
    decimal(bytes);
    text(" bytes in ");
    decimal(blocks);
    text(" blocks");
  }

  void end_line() { *at_++ = '\n'; }

  /// Writes the buffer. The destructor does not, as this throws std::system_error.
  void flush();

 private:
  static constexpr std::size_t width = 49;
  static constexpr std::size_t annotation_max = 1024;
  static constexpr std::size_t capacity = 256 * 1024;

  char* end() const { return buffer_.get() + capacity; }
  std::size_t room() const { return static_cast<std::size_t>(end() - at_); }

  Output out_;
  std::unique_ptr<char[]> buffer_;
  char* at_;
};

/// A block as traces name it: "7ffd30a51000<12>".
std::string block_text(const heap::PlacedBlock& block);

/// Appends a comment line for every block, the oldest first. A trace with such lines reads as one without.
///
///     # leak: 81d220b48<6655>, 8 bytes, allocated 5 lines before the end
void append_leaks(AnnotatedText& out, std::vector<heap::PlacedBlock> blocks, const heap::Clock& clock);

/// Writes the trace to standard output with its annotations. An Annotator is made of (out, complaints, options,
/// settings...). It has annotate(event, line), which writes the line to `out`, and append_leaks(). Before an error is
/// thrown all lines up to it are written.
template <class Annotator, class... Settings>
void annotate_lines(const Options& options, Settings... settings) {
  Trace trace(options);
  AnnotatedText out(STDOUT_FILENO);
  Annotator annotator(out, trace.complaints(), options, settings...);
  try {
    trace.for_each([&](const Event& event, std::size_t i) { annotator.annotate(event, trace.line(event, i)); });
    if (options.leaks) annotator.append_leaks();
  } catch (const FormatError&) {
    out.flush();
    throw;
  }
  out.flush();
  trace.complaints().say_count();
}

/// Where a summary goes: to standard output in the form asked for, and as a picture to the file of --plot. That file is
/// opened by the constructor, before the work begins.
class SummaryOutput {
 public:
  explicit SummaryOutput(const Options& options);

  bool draws() const { return picture_.has_value(); }

  template <class Summary>
  void write(const Summary& summary) {
    if (picture_) write_picture(to_picture(summary), output::json_text(summary));
    if (options_.prints) command::print(formatted(summary));
  }

 private:
  template <class Summary>
  std::string formatted(const Summary& summary) const {
    if (options_.form == Options::Form::json) return output::json_text(summary);
    return options_.form == Options::Form::csv ? to_csv(summary) : to_text(summary);
  }
  void write_picture(const output::Picture& picture, const std::string& numbers);

  const Options& options_;
  std::optional<output::PictureFile> picture_;
};

}  // namespace cmt::annotate
