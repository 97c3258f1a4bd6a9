#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "cmt/event.h"
#include "libcmt/trace/files.h"
#include "libcmt/trace/source.h"

namespace cmt {

/// Whether bytes begin with the record of an allocation in the .cmt of 2019, which has no magic.
bool is_legacy(std::string_view start);

/// Decodes the .cmt of 2019:
///
///     record = X(size) X(distance) [ X(step)  if size != 0 ]
///     X(v)   = base 128, least significant first, the high bit set on the last byte
///
/// size > 0 and distance 0 is a malloc, size 0 a free, both a realloc. The distance is counted from the tag after the
/// newest, and the new tag is the newest plus the step. Sizes have 28 bits; a fifth byte, which its writer emitted for
/// larger ones and its reader refused, is read here.
class LegacyDecoder {
 public:
  enum class Result { event, incomplete, wrong };

  /// Takes one record off the front of `bytes`.
  Result next(std::string_view& bytes, Event& event);

 private:
  Tag newest_ = 0;
};

inline constexpr std::size_t legacy_record_limit = 15;

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
  LegacyDecoder decoder_;
  bool at_end_ = false;
  std::vector<Event> batch_;
};

}  // namespace cmt
