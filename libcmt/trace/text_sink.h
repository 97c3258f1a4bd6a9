#pragma once

#include <string>

#include "cmt/text.h"
#include "libcmt/text/format.h"
#include "libcmt/trace/output.h"
#include "libcmt/trace/sink.h"

namespace cmt {

/// Writes the canonical text.
class TextSink : public Sink {
 public:
  TextSink(Output& output, const Header& header)
      : output_(output), has_end_(header.has_header || !header.metadata.empty()) {
    text::append_header(buffer_, header);
  }

  void add(std::span<const BookedEvent> events) override {
    for (const BookedEvent& booked : events) {
      append_line(buffer_, booked.event);
      buffer_ += '\n';
    }
    if (buffer_.size() > buffer_size) flush();
  }

  std::size_t room() const override { return 64; }

  void flush() override {
    output_.write(buffer_);
    buffer_.clear();
  }

  void finish(const Totals& totals) override {
    if (has_end_) text::append_end(buffer_, totals.repairs, totals.truncated);
    flush();
  }

 private:
  static constexpr std::size_t buffer_size = 64 * 1024;

  Output& output_;
  bool has_end_;
  std::string buffer_;
};

}  // namespace cmt
