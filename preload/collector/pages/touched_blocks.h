// Events of the kind touch and resident, made of the reports about pages of large blocks. The hard part is to report
// each page once, and never as touched if it may have been in memory before.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <unordered_map>
#include <vector>

#include "cmt/event.h"
#include "libcmt/format/live_blocks.h"
#include "preload/collector/pages/page_runs.h"

namespace cmt::collector {

/// The content of a record_block and the records after it (preload/protocol.h, "Pages of large blocks").
struct PagesReport {
  bool is_there = false;    ///< there is a record_block
  std::uint64_t flags = 0;  ///< flags of the record_block
  std::uint64_t bytes = 0;  ///< its size, if it has one
  std::uint64_t since = 0;  ///< the stamp of a record_since
  std::vector<PageRun> runs{};

  bool has(std::uint64_t flag) const { return (flags & flag) != 0; }
};

/// The large blocks that live and their known pages, while the trace is written. Makes events of the kinds touch and
/// resident from the pages that the program and the collector have seen.
///
/// Each page is reported once:
///
/// - as `resident` if it was, or may have been, in memory when the block was given;
///
/// - as `touch` if it was not in memory then, is now, and is not a page of zeros.
///
/// A realloc's result has the pages of its old block as resident ones. If the kernel could not be asked at a block's
/// end, the unknown pages are resident, too. If a block begins without a record_block, nobody asks about it, and all of
/// its pages are resident from its begin on.
///
/// Threads: used by one, the encoder.
class TouchedBlocks {
 public:
  /// `bytes_min`: the least size of a large block; 0: there are none.
  explicit TouchedBlocks(std::uint64_t bytes_min) : bytes_min_(bytes_min != 0 ? bytes_min : none) {}

  bool is_large(std::uint64_t bytes) const { return bytes >= bytes_min_; }
  /// Large blocks have at least so many bytes.
  std::uint64_t bytes_min() const { return bytes_min_; }

  // Each function returns the events that follow from it, without times. They are valid until the next call.
  using Events = const std::vector<Event>&;

  /// A block was allocated at `stamp`. The events follow the allocation.
  Events add_block(const Event& allocation, std::uint64_t stamp, const PagesReport& report);
  /// A block is about to end. The events precede its end.
  Events end_block(const format::LiveBlock& block, std::uint32_t thread, const PagesReport& report);
  /// A realloc of a block begins, which may end the block. The events follow at once.
  Events begin_realloc(const format::LiveBlock& block, std::uint32_t thread, const PagesReport& report);
  /// A realloc is about to return another block for `old`. The events precede the return.
  Events replace_block(const format::LiveBlock& old, std::uint32_t thread);
  /// A realloc was given `old` and has returned another block. The events follow the return.
  Events resize_block(const format::LiveBlock& old, const Event& realloc, std::uint64_t stamp,
                      const PagesReport& report);
  /// A report apart from calls. If its `since` is not 0, it is only about a block that was allocated before.
  Events add_report(const format::LiveBlock& block, std::uint32_t thread, const PagesReport& report);

  /// The program has given back whole pages, from an address on. Returns an event of the kind discard for each block
  /// with known pages there. Reports of looks before `stamp` are no longer about these blocks.
  Events discard(std::uint64_t address, std::uint64_t bytes, std::uint32_t thread, std::uint64_t stamp);

  /// For a recovery: takes an event that the trace has already.
  void restore(const Event& event);

  std::size_t size() const { return blocks_.size(); }

 private:
  static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

  struct Block {
    std::uint64_t address, bytes, stamp;
    std::uint32_t thread;
    bool has_baseline;  ///< the pages in memory when it was given are known
    bool is_in_realloc = false;
    bool was_asked = false;  ///< the kernel was asked at the begin of the realloc
    PageSet known{};

    std::uint64_t pages() const;
    bool remove(std::uint64_t begin, std::uint64_t end);
  };

  using Blocks = std::unordered_map<Tag, Block>;

  Block* find(const format::LiveBlock& block);
  void insert(Tag tag, Block block);
  void erase(Tag tag);
  void index_places();
  void append(Tag tag, const Block& block, const PageRun& run, Kind kind, std::uint32_t thread);
  void append_new(Tag tag, Block& block, const std::vector<PageRun>& runs, std::uint32_t thread, bool keep_unsure);
  void append_unknown(Tag tag, Block& block, std::uint32_t thread);

  const std::uint64_t bytes_min_;
  Blocks blocks_;
  /// Their tags by address, since a program has given back pages; most never do.
  std::map<std::uint64_t, Tag> places_;
  bool has_places_ = false;
  std::vector<Event> events_;
};

}  // namespace cmt::collector
