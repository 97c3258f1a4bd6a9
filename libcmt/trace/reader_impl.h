#pragma once

#include <functional>
#include <memory>

#include "cmt/reader.h"
#include "libcmt/trace/input.h"
#include "libcmt/trace/source.h"

namespace cmt {

/// What a Reader is made of. A tool that knows more forms than the library gives its own way to choose the source.
class Reader::Impl {
 public:
  using Choose = std::function<std::unique_ptr<Source>(std::unique_ptr<Input>, const ReadOptions&, DefectLog&)>;

  Impl(std::unique_ptr<Input> input, ReadOptions options, const Choose& choose);

  std::span<const Event> read();
  void seek(std::uint64_t event);
  bool truncated() const { return is_cut_ || source_->truncated(); }

  ReadOptions options_;
  DefectLog log_;
  Input* input_;
  bool is_cut_ = false;
  std::unique_ptr<Source> source_;
  std::uint64_t first_ = 0;   // the number of the first event that the source handed out last
  std::uint64_t next_ = 0;    // and of the one that it hands out next
  std::uint64_t wanted_ = 0;  // events before this one are dropped
  std::size_t dropped_ = 0;   // of those handed out last

 private:
  void end();
};

/// The forms of the library itself: text, .cmt and legacy .cmt, told apart by content.
std::unique_ptr<Source> choose_source(std::unique_ptr<Input> input, const ReadOptions& options, DefectLog& log);

}  // namespace cmt
