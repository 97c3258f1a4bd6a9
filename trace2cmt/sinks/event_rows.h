/// The table that --to=csv and --to=parquet write: one row an event.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "cmt/event.h"
#include "libcmt/block_table.h"
#include "libcmt/format/live_blocks.h"

namespace cmt::trace2cmt {

// A query about lifetimes or leaks should not have to join the table with itself. But a block's lifetime is not known
// when the block is made. So the row of the event that ends a block has the block's lifetime and size, and its tag in
// old_tag. A leaked block has a row with its tag, and no row with that old_tag and a lifetime. This takes one pass over
// the trace, and memory for the live blocks only.

enum class ColumnType : std::uint8_t {
  int64,   // counts and times: never negative, but signed, so that SQL can subtract them
  uint64,  // sizes, tags, addresses: may use all 64 bits
  uint32,
  kind,  // text, a name of cmt::Kind
  text,
};

struct ColumnSpec {
  std::string_view name;
  ColumnType type;
  bool may_lack;  ///< null in some rows
};

inline constexpr std::array<ColumnSpec, 17> event_columns{{
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
    {"pool_block", ColumnType::uint64, true},
}};

/// The values of one event, in the order of event_columns. The kind is its number on the wire, and an empty number is
/// null. The label is valid as long as the event's label.
struct EventRow {
  std::array<std::optional<std::uint64_t>, event_columns.size() - 2> numbers;
  std::optional<std::string_view> label;
  std::optional<std::uint64_t> pool_block;
};

/// Makes rows of events. The events have to be consistent. Memory: 24 bytes a live block.
class EventRows {
 public:
  /// `old` is the live block that the event was given, or nullptr if the trace does not know it.
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

}  // namespace cmt::trace2cmt
