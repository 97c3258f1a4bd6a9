#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "cmt/event.h"
#include "libcmt/block_table.h"
#include "libcmt/format/live_blocks.h"

namespace trace2cmt {

// The table that --to=csv and --to=parquet write: one row an event.
//
// Whoever asks such a table how long blocks lived, or what leaked, should not have to join it with itself. But how long
// a block will live is not known when it is made: so its lifetime and its size stand on the row of the event that ends
// it, beside its tag. What never ends has a row that made its tag, and none that has it as the old one together with a
// lifetime. One pass, and memory for the live blocks alone.

enum class ColumnType : std::uint8_t {
  int64,   // counts and times: never negative, and signed so that differences of them work in SQL
  uint64,  // what has 64 bits: sizes, tags, addresses
  uint32,
  kind,  // text, one of 25
  text,
};

struct ColumnSpec {
  std::string_view name;
  ColumnType type;
  bool may_lack;  ///< null in some rows
};

inline constexpr std::array<ColumnSpec, 16> event_columns{{
    {"event", ColumnType::int64, false},
    {"kind", ColumnType::kind, false},
    {"thread", ColumnType::uint32, false},
    {"time_ns", ColumnType::int64, true},
    {"size", ColumnType::uint64, true},
    {"count", ColumnType::uint64, true},
    {"alignment", ColumnType::uint64, true},
    {"tag", ColumnType::uint64, true},
    {"address", ColumnType::uint64, true},
    {"usable_size", ColumnType::uint64, true},
    {"old_tag", ColumnType::uint64, true},
    {"old_address", ColumnType::uint64, true},
    {"old_size", ColumnType::uint64, true},
    {"lifetime_events", ColumnType::int64, true},
    {"lifetime_ns", ColumnType::int64, true},
    {"label", ColumnType::text, true},
}};

/// The values of one event, by column: a number, or for the kind its value; nothing for null. The label is a text, and
/// valid as long as the event's.
struct EventRow {
  std::array<std::optional<std::uint64_t>, event_columns.size() - 1> numbers;
  std::optional<std::string_view> label;
};

/// Makes rows of consistent events. Memory: 24 bytes a live block.
class EventRows {
 public:
  /// `old` is the live block that the event was given, or nullptr where none is known.
  EventRow next(const cmt::Event& event, const cmt::format::LiveBlock* old);

 private:
  struct Birth {
    cmt::Tag tag = 0;
    std::uint64_t event = 0;
    std::uint64_t time_ns = cmt::unknown;
  };

  std::uint64_t event_ = 0;
  cmt::BlockTable<Birth> births_;
};

}  // namespace trace2cmt
