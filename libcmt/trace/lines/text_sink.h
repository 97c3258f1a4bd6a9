/// Writes a text trace (format-spec/text.md).
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "libcmt/text/stack_lines.h"
#include "libcmt/trace/task_thread.h"
#include "libcmt/trace/writer/sink.h"

namespace cmt {

/// Writes the canonical text. With a second thread, that thread formats the lines of some events and writes them, while
/// the caller adds more. The definitions of stacks are formatted at once, since their table may change.
class TextSink : public Sink {
 public:
  TextSink(Output& output, const Header& header, const WriteOptions& options);
  /// Writes the lines of all events so far, as a sink without a second thread has done by then.
  ~TextSink() override;

  void add_event(const BookedEvent& booked) override;
  std::size_t room() const override { return EventBatch::capacity; }
  void use_stacks(const StackTable& stacks) override { stacks_.use(stacks); }
  StackId stack_in_file(StackId stack) const override { return stacks_.node_number(stack); }
  void flush() override;
  void finish(const Totals& totals) override;

 private:
  static constexpr std::size_t buffer_size = 64 * 1024;
  static constexpr std::size_t piece_events = 512;

  /// Definitions of stacks that are before an event. They end at `end` in the piece's text of definitions.
  struct Definitions {
    std::size_t event, end;
  };
  /// Some events, whose lines the thread formats.
  struct Piece {
    std::vector<Event> events;
    std::deque<std::string> labels;  // of these events
    std::string definitions_text;
    std::vector<Definitions> definitions;
  };

  void start_thread();
  void append(const Event& event);
  void add_to_piece(Event event);
  void post_piece();
  void write_piece(const Piece& piece);
  void write_buffer();
  void end_tasks();

  Output& output_;
  bool has_end_;
  text::StackLineWriter stacks_;
  std::string buffer_;  // belongs to the thread while it has tasks

  std::vector<Piece> pieces_;  // pieces that the thread has not written, and the one that fills
  std::size_t filling_ = 0;
  std::unique_ptr<TaskThread> thread_;
};

}  // namespace cmt
