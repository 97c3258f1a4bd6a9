#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmt/header.h"
#include "cmt/repairs.h"
#include "trace2cmt/inspect/trace_file.h"

namespace trace2cmt {

/// What one stream takes in a .cmt, over all blocks.
struct StreamSize {
  std::uint64_t id = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t bytes = 0;
};

/// How a .cmt is laid out.
struct Layout {
  std::uint64_t blocks = 0;
  std::uint64_t keyframes = 0;
  std::vector<StreamSize> streams;  ///< by rising id
  std::uint64_t other_bytes = 0;    ///< headers, index, totals
  std::uint64_t last_block = 0;     ///< offset of its section
};

/// What can be said of a trace without looking at single events.
struct Info {
  std::string name;
  std::uint64_t file_bytes = 0;
  cmt::Header header;
  cmt::Totals totals;
  bool totals_stated = false;                 ///< by the file itself; else they were counted
  bool cut_off = false;                       ///< the end is missing
  std::optional<std::uint64_t> last_time_ns;  ///< of the last event that has one
  std::optional<Layout> layout;

  double per_event(std::uint64_t bytes) const;
};

/// Of a whole .cmt only the headers of its blocks, index, totals and the times of the last block are read; anything
/// else is read through. Throws FormatError and std::system_error.
Info info_of(const TraceFile& file);

std::string to_text(const Info& info);

/// Schema cmt.info/1.
std::string to_json(const Info& info);

/// "core", "addresses", …; empty for a stream that version 1 does not know.
std::string_view stream_name(std::uint64_t id);

}  // namespace trace2cmt
