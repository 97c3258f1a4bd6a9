#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "heap/tagger.h"
#include "text/parser.h"
#include "trace/input.h"
#include "trace/source.h"

namespace cmt {

/// Text traces. Reads ahead to the first event, so that the header is known.
class TextSource : public Source {
 public:
  TextSource(std::unique_ptr<Input> input, DefectLog& log);

  std::span<const Event> read() override;
  std::string_view line(std::size_t i) const override { return i < lines_.size() ? lines_[i] : std::string_view(); }

 private:
  bool next_line(std::string_view& line);
  void fill();
  void take(std::string_view line);
  void cut_off();
  void take_last();
  void take_event(std::string_view line, Event event);
  void take_metadata(const text::Line& line);
  void describe_first(const Event& event);
  std::string place() const { return input_->name() + ":" + std::to_string(line_number_); }

  std::unique_ptr<Input> input_;
  DefectLog& log_;
  text::Parser parser_;
  heap::Tagger tagger_;
  std::uint64_t line_number_ = 0;
  bool any_event_ = false;
  bool any_block_ = false;
  bool ended_ = false;
  bool finished_ = false;
  bool ahead_ = false;  // the batch was read to know the header, and is not yet handed out
  std::vector<Event> batch_;
  std::vector<std::string_view> lines_;
  std::string_view window_;  // lines of this batch stay in the input's window
  std::deque<std::string> labels_;
};

}  // namespace cmt
