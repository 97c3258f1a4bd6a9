#pragma once

#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libcmt/heap/mender.h"
#include "libcmt/trace/files.h"
#include "libcmt/trace/source.h"

namespace cmt {

/// Which an editor may put before a text in UTF-8.
inline constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

/// What an input's first bytes look like, for a message: "a PNG image"; empty where that is not known.
std::string_view content_name(std::string_view start);

/// A trace of lines: cuts the input into them, and names and mends the events that a form of text finds in them.
/// Memory: one window of the input, and what the mender knows of live blocks.
class LineSource : public Source {
 public:
  std::span<const Event> read() override;
  std::string place(std::size_t i, std::uint64_t) const override { return place(line_numbers_[i]); }
  std::string_view line(std::size_t i) const override { return i < lines_.size() ? lines_[i] : std::string_view(); }

 protected:
  using Source::Source;

  /// Finds what is in a line, and calls add() or wrong().
  virtual void take(std::string_view line) = 0;

  /// The short way for common lines: reads the first of whole `lines` into an event that holds its defaults, and
  /// returns its length without LF. 0: it is to be taken as any other.
  virtual std::size_t take_plain(std::string_view, Event&) { return 0; }

  /// What stands behind the last LF, at the input's end.
  virtual void take_last(std::string_view line) { take(line); }

  /// The input is at its end, and all lines have been taken.
  virtual void end() {}

  /// Reads ahead to the first event, so that the header is known. To be called when the form is ready to take lines.
  void read_ahead();

  /// The line's own text, as an annotator echoes it, is `shown`.
  void add(Event event, std::string_view shown);
  void wrong(const std::string& what) { log_.report(place(), what); }

  /// Blocks are given by names that are no addresses. To be called before the first add().
  void leave_out_addresses() { mender_.leave_out_addresses(); }

  std::string place() const { return place(line_number_); }
  std::string place(std::uint64_t line) const { return input_->name() + ":" + std::to_string(line); }
  bool any_event() const { return any_event_; }

 private:
  void fill();
  void read_batch();
  void take_lines();
  void add_last(std::string_view shown);
  void take_end(std::string_view last);
  void add_mended(std::string_view shown);
  void describe_first(const Event& event);
  void refuse_nonsense();

  heap::Mender mender_;
  std::uint64_t line_number_ = 0;
  bool any_event_ = false;
  bool any_block_ = false;
  bool finished_ = false;
  std::exception_ptr error_;
  std::string start_;   // the input's first bytes
  bool ahead_ = false;  // the batch was read to know the header, and is not yet handed out
  std::vector<Event> batch_;
  std::vector<std::string_view> lines_;
  std::vector<std::uint64_t> line_numbers_;
  std::string_view window_;  // lines of this batch stay in the input's window
  std::deque<std::string> labels_;
};

}  // namespace cmt
