/// Finds the functions whose blocks hold pages, for a report's findings. It needs a pass over the trace of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "analysis/held_pages/page_use.h"
#include "analysis/places/summary.h"
#include "cmt/stacks.h"
#include "cmtreport/report/recording.h"
#include "toolkit/terminal/progress.h"

namespace cmt::report {

/// The pages that the blocks of one trace hold, from a separate pass over it.
struct PagePass {
  /// Blocks of one call stack that were made in one phase, which lasts from a mark to the next one.
  struct Key {
    StackId stack = 0;
    std::uint32_t phase = 0;
  };

  /// The pages that blocks held at a moment, by number of a key.
  struct Moment {
    std::uint64_t event = 0;
    std::uint64_t time_ns = unknown;
    std::uint64_t pages = 0;
    std::uint64_t allocated_bytes = 0;  ///< so far
    analysis::PageUses uses{};
  };

  analysis::Summary summary;
  Moment most_unused;  ///< at the sample of summary.holders
  /// At the walk with most separable pages; event 0: no walk had any. Walks near the end, while the program frees its
  /// memory, do not count: after the moment, at least a hundredth more bytes are allocated than before it.
  Moment most_separable;
  std::vector<Key> keys;
  std::vector<std::string>
      phases;  ///< their marks; the first, "", is that before the first mark, and those beyond 1,000
};

/// Reads a trace in a thread of its own. Does not report defects. Time and memory are those of overhead --by=function.
class PageReading {
 public:
  explicit PageReading(const std::string& path);

  /// Waits for the thread, with a line of progress on the terminal, and returns the result; empty if blocks have no
  /// addresses. To be called once. Throws FormatError and std::system_error.
  std::optional<PagePass> finish();

 private:
  std::string path_;
  terminal::ProgressLine line_;
  std::atomic<std::uint64_t> bytes_read_ = 0, bytes_total_ = 0;
  std::promise<void> ended_;
  std::optional<PagePass> pass_;
  std::exception_ptr error_;
  std::jthread thread_;  // the last member: it stops before the others end
};

/// A function whose blocks hold pages. Separable is as analysis/held_pages/page_use.h has it.
struct PageHolder {
  FunctionId function{};
  analysis::PageUse use;
  std::uint32_t phase = 0;  ///< the phase in which the blocks with the most separable bytes were made
  std::int64_t separable_of_phase = 0;
  std::vector<std::pair<CallId, std::int64_t>> separable_by_node{};
};

/// The pass, and the holders of the pages at two moments.
struct HeldPages {
  const PagePass* pass = nullptr;     ///< nullptr: not known
  std::vector<PageHolder> holders{};  ///< at pass->most_unused
  std::vector<PageHolder> pinning{};  ///< at pass->most_separable
  /// The highest block of the first of pass->summary.heap_tops was made there; CallTree::left_out: not known.
  CallId heap_top_node = CallTree::left_out;
  /// The same of the first block whose free raised glibc's threshold for mappings.
  CallId threshold_node = CallTree::left_out;
};

/// Returns the functions that hold pages at one of the moments of a pass, the most unused bytes first. The functions
/// are those of the recording, which is of this trace alone.
std::vector<PageHolder> find_holders(const PagePass& pass, const PagePass::Moment& moment, const Recording& recording);

/// Fills in the functions that made the blocks at the top of heaps, and those that raised the threshold, and the nodes
/// of the first ones. `pass` is that of `pages`.
void name_blocks(HeldPages& pages, PagePass& pass, const Recording& recording);

}  // namespace cmt::report
