#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "toolkit/process/smaps.h"

namespace cmt::watch {

/// Which mappings of a process are looked at.
struct MappingFilter {
  enum class Kind {
    heap,       ///< "[heap]"
    anonymous,  ///< without a name, or with one that the program gave it ("[anon:…")
    file,       ///< of a path, shared memory's too
    stack,      ///< the first thread's
  };

  std::set<Kind> kinds;           ///< empty: all, those too that are of no kind
  std::string permissions;        ///< letters of "rwx" that a mapping has to have
  std::uint64_t longer_than = 0;  ///< pages

  bool takes(const process::Mapping& mapping) const;
};

constexpr const char* mapping_kind_names = "heap, anonymous, file and stack";

std::string_view name_of(MappingFilter::Kind kind);

/// "heap,file"; nothing where a word is no kind.
std::optional<std::set<MappingFilter::Kind>> parse_mapping_kinds(std::string_view text);

}  // namespace cmt::watch
