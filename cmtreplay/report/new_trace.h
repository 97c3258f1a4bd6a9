/// Writes the trace anew with the addresses that an allocator returned (--new-trace).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "cmt/reader.h"
#include "cmtreplay/plan/planner.h"
#include "libcmt/block_table.h"

namespace cmt::replay {

/// Gives events the addresses that an allocator returned. All other fields stay, so that the new trace shows the
/// program with that allocator.
///
/// If this allocator refused a call that the recorded one did not refuse, the call returns 0, and later calls for that
/// block get NULL. A block that the trace does not know has no address.
class Readdresser {
 public:
  /// `next_pointer` gives the returned pointers in order.
  explicit Readdresser(std::function<std::uint64_t()> next_pointer) : next_pointer_(std::move(next_pointer)) {}

  Event readdress(const Event& event);

 private:
  /// A block of the old trace in the new one.
  struct Renamed {
    Tag tag = 0;
    Tag new_tag = 0;  ///< 0: NULL
    std::uint64_t address = 0;
  };

  void rename_old(Event& event, const Event& original);
  void rename_new(Event& event, const Event& original, std::uint64_t pointer);

  std::function<std::uint64_t()> next_pointer_;
  Planner planner_;
  BlockTable<Renamed> blocks_;
};

struct NewTraceFile {
  std::string path;  ///< a .cmt if it ends so, else text; empty: `output`
  int output = -1;
};

/// Writes the events of `reader`, with the returned pointers as addresses, and with the allocator's file name.
///
/// Touched pages are left out: a block lies on other pages at its new address. Throws std::system_error.
void write_new_trace(Reader& reader, std::span<const std::uint64_t> pointers, const std::string& allocator,
                     const NewTraceFile& to);

}  // namespace cmt::replay
