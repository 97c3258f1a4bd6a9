/// The base of all sources that read lines: text traces, and the logs of other tools (toolkit/logs).
#pragma once

#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libcmt/heap/mender.h"
#include "libcmt/trace/files.h"
#include "libcmt/trace/lines/line_pieces.h"
#include "libcmt/trace/source.h"

namespace cmt {

/// The bytes that an editor may put before a text in UTF-8.
inline constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

/// The kind of content that an input's first bytes suggest, for a message: "a PNG image". Empty if it is not known.
std::string_view content_name(std::string_view start);

/// A trace of lines: cuts the input into lines, and gives tags to the events in them and mends them (heap::Mender). A
/// derived class reads the lines. Memory: some pieces of the input, and the mender's table of live blocks.
///
/// Mostly the events of a piece become events of the trace without a copy: each gets its tags in place. The rest of a
/// piece is copied if the mender holds an event back or inserts one, or after a line that was not parsed ahead.
class LineSource : public Source {
 public:
  std::span<const Event> read() override;
  std::string place(std::size_t i, std::uint64_t) const override { return place(line_numbers_[i]); }
  std::string_view line(std::size_t i) const override { return i < lines_.size() ? lines_[i] : std::string_view(); }
  bool exchange(LineBatch& batch) override;
  std::uint64_t bytes_taken() const override { return bytes_taken_; }
  bool knows_blocks() const override { return mender_.knows_blocks(); }
  std::span<const LiveBlock> given() const override { return {given_.data(), batch_.size()}; }
  std::vector<LiveBlock> list_live_blocks() const override;
  std::uint64_t line_number(std::size_t i) const override { return line_numbers_[i]; }

 protected:
  /// Without `parse`, take() gets all lines. With more than one thread, others read and parse ahead.
  LineSource(std::unique_ptr<Input> input, DefectLog& log, unsigned threads, LinePieces::Parse parse)
      : Source(std::move(input), log), is_parsed_(parse != nullptr), pieces_(*input_, threads, parse) {}

  /// Reads a line, and calls add() or wrong().
  virtual void take(std::string_view line) = 0;

  /// Completes an event that was parsed ahead and whose stack is still a number of the text.
  virtual void take_stack(Event&) {}

  /// Whether some line was understood. An input that has only wrong lines is no trace.
  virtual bool has_understood() const { return any_event_; }

  /// Takes the bytes after the last LF, at the input's end.
  virtual void take_last(std::string_view line) { take(line); }

  /// Is called at the input's end, after all lines have been taken.
  virtual void end() {}

  /// Reads ahead to the first event, so that the header is known. To be called when the derived class can take lines.
  void read_ahead();

  /// Adds an event. `shown` is its line as an annotator echoes it.
  void add(Event event, std::string_view shown);
  void wrong(const std::string& what) { log_.report(place(), what); }

  /// Declares that blocks have names that are no addresses. To be called before the first add().
  void leave_out_addresses() { mender_.leave_out_addresses(); }

  std::string place() const { return place(line_number_); }
  std::string place(std::uint64_t line) const { return input_->name() + ":" + std::to_string(line); }
  bool any_event() const { return any_event_; }

 private:
  void fill();
  void read_batch();
  void take_piece(LinePiece& piece);
  void take_events(LinePiece& piece);
  void mend_in_place(std::size_t count);
  void copy_events_from(std::size_t begin);
  void take_copied_events(const std::vector<LinePiece::Other>& others, bool is_first_complete);
  void take_other(const LinePiece::Other& other);
  void take_lines(std::string_view lines);
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
  bool ahead_ = false;  // the batch was read for the header, and is not yet handed out
  std::vector<Event> batch_;
  std::vector<LiveBlock> given_;  // the block that each event was given
  std::vector<std::string_view> lines_;
  std::vector<std::uint64_t> line_numbers_;
  std::deque<std::string> labels_;
  std::uint64_t bytes_taken_ = 0;
  bool lines_are_plain_ = true;
  LinePiece* piece_ = nullptr;  // the last one

  std::size_t mended_ = 0;  // the number of events of the batch that need no copy

  // The events of a piece that have to be copied, with their lines.
  std::vector<Event> copied_;
  std::vector<std::string_view> copied_lines_;
  std::vector<std::uint64_t> copied_line_numbers_;

  const bool is_parsed_;
  LinePieces pieces_;
};

}  // namespace cmt
