// Formats pieces of 512 events, on a second thread if there is one, in the order in which they were added.

#include "libcmt/trace/lines/text_sink.h"

#include <cassert>
#include <exception>
#include <system_error>
#include <utility>

#include "cmt/text.h"
#include "libcmt/text/format.h"

namespace cmt {

TextSink::TextSink(Output& output, const Header& header, const WriteOptions& options)
    : output_(output), has_end_(header.has_header || !header.metadata.empty()) {
  text::append_header(buffer_, header);
  if (options.threads > 1) start_thread();
}

TextSink::~TextSink() {
  try {
    end_tasks();
  } catch (const std::exception&) {
    // The sink ends without finish(), so an earlier call has thrown the error already.
  }
}

void TextSink::start_thread() {
  try {
    thread_ = std::make_unique<TaskThread>();
    pieces_.resize(TaskThread::capacity + 2);
  } catch (const std::system_error&) {
    thread_.reset();
  }
}

void TextSink::add_event(const BookedEvent& booked) {
  if (thread_) return add_to_piece(booked.event);
  Event event = booked.event;
  event.stack = event.stack != 0 ? stacks_.append_stack(buffer_, event.stack) : 0;
  append(event);
}

/// Appends the line of an event whose stack is a number of the text.
void TextSink::append(const Event& event) {
  append_line(buffer_, event);
  buffer_ += '\n';
  if (buffer_.size() > buffer_size) write_buffer();
}

void TextSink::add_to_piece(Event event) {
  Piece& piece = pieces_[filling_];
  if (event.stack != 0) {
    const std::size_t before = piece.definitions_text.size();
    event.stack = stacks_.append_stack(piece.definitions_text, event.stack);
    const std::size_t end = piece.definitions_text.size();
    if (end != before) piece.definitions.push_back({piece.events.size(), end});
  }
  if (!event.label.empty()) event.label = piece.labels.emplace_back(event.label);
  piece.events.push_back(event);
  if (piece.events.size() >= piece_events || piece.definitions_text.size() > buffer_size) post_piece();
}

void TextSink::post_piece() {
  assert(pieces_.size() > TaskThread::capacity + 1);
  const Piece& full = pieces_[filling_];
  if (full.events.empty()) return;
  thread_->post([this, &full] { write_piece(full); });
  filling_ = (filling_ + 1) % pieces_.size();  // the piece that was posted longest ago is written
  Piece& next = pieces_[filling_];
  next.events.clear();
  next.labels.clear();
  next.definitions_text.clear();
  next.definitions.clear();
}

void TextSink::write_piece(const Piece& piece) {
  auto definitions = piece.definitions.begin();
  std::size_t written = 0;
  for (std::size_t i = 0; i < piece.events.size(); ++i) {
    if (definitions != piece.definitions.end() && definitions->event == i) {
      buffer_.append(piece.definitions_text, written, definitions->end - written);
      written = definitions++->end;
    }
    append(piece.events[i]);
  }
  assert(written == piece.definitions_text.size());
}

/// After this, this thread may write.
void TextSink::end_tasks() {
  if (!thread_) return;
  post_piece();
  thread_->wait_for_all();
}

void TextSink::write_buffer() {
  output_.write(buffer_);
  buffer_.clear();
}

void TextSink::flush() {
  end_tasks();
  write_buffer();
}

void TextSink::finish(const Totals& totals) {
  end_tasks();
  stacks_.append_end(buffer_);
  if (has_end_) text::append_end(buffer_, totals);
  write_buffer();
}

}  // namespace cmt
