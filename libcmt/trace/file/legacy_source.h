/// Reads the .cmt of 2019.
#pragma once

#include <memory>
#include <string_view>

#include "cmt/event.h"
#include "libcmt/trace/files.h"
#include "libcmt/trace/source.h"

namespace cmt {

/// Whether bytes begin with the record of an allocation in the .cmt of 2019. This form has no magic.
bool is_legacy(std::string_view start);

/// Reads the .cmt of 2019, which has no header, no totals and no addresses:
///
///     record = X(size) X(distance) [ X(step)  if size != 0 ]
///     X(v)   = base 128, least significant first, the high bit set on the last byte
///
/// A record with a size above 0 and a distance of 0 is a malloc, with a size of 0 a free, with neither 0 a realloc. The
/// distance is counted from the tag after the newest, and the new tag is the newest plus the step. Sizes have 28 bits.
/// For larger sizes the writer of 2019 emitted a fifth byte, which the reader of 2019 refused and this one takes. If
/// the last record is cut off, the trace is truncated.
class LegacySource : public Source {
 public:
  LegacySource(std::unique_ptr<Input> input, DefectLog& log) : Source(std::move(input), log) {
    header_.format = Format::legacy_cmt;
  }

  std::span<const Event> read() override;

 private:
  Tag newest_ = 0;
  bool at_end_ = false;
  std::vector<Event> batch_;
};

}  // namespace cmt
