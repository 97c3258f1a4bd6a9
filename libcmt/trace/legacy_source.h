#pragma once

#include <memory>

#include "libcmt/format/legacy.h"
#include "libcmt/trace/input.h"
#include "libcmt/trace/source.h"

namespace cmt {

/// The .cmt of 2019: no header, no totals, no addresses. A record cut off at the end makes it truncated.
class LegacySource : public Source {
 public:
  LegacySource(std::unique_ptr<Input> input, DefectLog& log) : input_(std::move(input)), log_(log) {
    header_.format = Format::legacy_cmt;
  }

  std::span<const Event> read() override;
  std::string place(std::size_t, std::uint64_t number) const override {
    return input_->name() + ": event " + std::to_string(number + 1);
  }

 private:
  std::unique_ptr<Input> input_;
  DefectLog& log_;
  format::LegacyDecoder decoder_;
  bool at_end_ = false;
  std::vector<Event> batch_;
};

}  // namespace cmt
