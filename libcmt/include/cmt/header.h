#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cmt/event.h"
#include "cmt/repairs.h"

namespace cmt {

enum class Format { text, cmt, legacy_cmt };

/// "text", "cmt" or "legacy_cmt".
std::string_view name(Format format);

/// What is known of a trace before its first event.
struct Header {
  Format format = Format::text;  ///< of the input; a writer ignores it
  bool has_addresses = false;
  bool has_times = false;
  bool has_usable = false;
  bool has_header = false;  ///< a text has header lines, and so an end line

  /// `#cmt key=value` lines, in order. Known keys are in format-spec/text.md; others are kept as they are.
  std::vector<std::pair<std::string, std::string>> metadata;

  /// The value of a key, or nothing.
  std::optional<std::string_view> find(std::string_view key) const {
    for (const auto& [name, value] : metadata) {
      if (name == key) return value;
    }
    return std::nullopt;
  }
};

/// What is known of a trace at its end. Only a .cmt that is whole states it.
struct Totals {
  std::uint64_t events = 0;
  std::array<std::uint64_t, kind_limit> by_kind{};  ///< by the number of the kind, known here or not
  std::uint64_t failed = 0;                         ///< calls that were refused
  std::uint64_t allocations = 0;                    ///< blocks made
  std::uint64_t allocated_bytes = 0;                ///< bytes asked for by them, in all
  std::uint64_t peak_live_blocks = 0;
  std::uint64_t peak_live_bytes = 0;
  std::uint64_t peak_live_bytes_event = 0;  ///< the event, counted from 1, that reached the peak first
  std::uint64_t end_live_blocks = 0;
  std::uint64_t end_live_bytes = 0;
  std::uint64_t threads = 0;  ///< different threads that made an event
  Repairs repairs;            ///< lines or events dropped or altered on the way here
  bool truncated = false;     ///< the recording itself broke off
};

}  // namespace cmt
