#pragma once

#include <cstdint>
#include <string_view>

#include "cmt/event.h"

namespace cmt::format {

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

}  // namespace cmt::format
