// Chooses the nearest plain call for an event, and names each kind of loss in a message.

#include "trace2cmt/sinks/plain_calls.h"

#include <cassert>

#include "toolkit/output/numbers.h"

namespace cmt::trace2cmt {
namespace {

/// The message of a Loss that occurred once, and of several.
struct LossWords {
  std::string_view one, several, done;
};

/// By the number of the Loss.
constexpr std::array<LossWords, loss_count> loss_words{{
    {"call that was refused", "calls that were refused", "left out"},
    {"call that was given NULL to free, or returned NULL for 0 bytes",
     "calls that were given NULL to free, or returned NULL for 0 bytes", "left out"},
    {"free of a block that the trace does not know", "frees of blocks that the trace does not know", "left out"},
    {"realloc of a block that the trace does not know", "reallocs of blocks that the trace does not know",
     "written as malloc"},
    {"thread's start, end or name, or mark", "threads' starts, ends and names, and marks", "left out"},
    {"sample", "samples", "left out"},
    {"run of touched pages, or call that gives memory back", "touched pages, and calls that give memory back",
     "left out"},
    {"event of a pool", "events of pools", "left out"},
    {"call of another kind", "calls of other kinds", "written as the nearest of malloc, realloc and free"},
    {"alignment", "alignments", "dropped"},
    {"size of 0", "sizes of 0", "written as 1"},
    {"size that is too large", "sizes that are too large", "written as the largest that there is"},
    {"event of another thread than the first", "events of other threads than the first",
     "written as if there were one"},
    {"block given back that is too old to be named", "blocks given back that are too old to be named",
     "left out, a realloc written as malloc"},
    {"block alive at the end", "blocks alive at the end", "freed there, so that the trace is balanced"},
}};

}  // namespace

PlainCall PlainCalls::nearest(const cmt::Event& event, bool old_known) {
  PlainCall call{.kind = kind_of(event, old_known), .tag = event.tag, .old_tag = event.old_tag};
  if (call.kind == PlainCall::Kind::none) return call;
  count_details(event);
  if (call.kind != PlainCall::Kind::free) call.size = size_of(event);
  assert(call.kind == PlainCall::Kind::free || (call.size >= sizes_.least && call.size <= sizes_.most));
  return call;
}

PlainCall::Kind PlainCalls::kind_of(const cmt::Event& event, bool old_known) {
  const cmt::KindTraits& kind = cmt::traits(event.kind);
  if (cmt::is_about_pages(event.kind) || cmt::gives_memory_back(event.kind))
    return count(Loss::memory), PlainCall::Kind::none;
  if (event.kind == cmt::Kind::sample) return count(Loss::sample), PlainCall::Kind::none;
  if (cmt::is_of_pool(event.kind)) return count(Loss::pool), PlainCall::Kind::none;
  if (!kind.allocates && !kind.releases) return count(Loss::no_call), PlainCall::Kind::none;
  if (event.failed()) return count(Loss::refused), PlainCall::Kind::none;
  if (event.tag == 0 && event.old_tag == 0) return count(Loss::null_block), PlainCall::Kind::none;
  if (event.tag == 0) {
    if (!old_known) return count(Loss::unknown_freed), PlainCall::Kind::none;
    return PlainCall::Kind::free;
  }
  if (event.old_tag == 0) return PlainCall::Kind::malloc;
  if (!old_known) return count(Loss::unknown_resized), PlainCall::Kind::malloc;
  return PlainCall::Kind::realloc;
}

void PlainCalls::count_details(const cmt::Event& event) {
  const bool resizes = event.tag != 0 && event.old_tag != 0;
  const bool plain =
      event.kind == cmt::Kind::malloc || event.kind == cmt::Kind::free || (event.kind == cmt::Kind::realloc && resizes);
  if (!plain) count(Loss::other_kind);
  if (event.alignment != 0) count(Loss::alignment);
  if (event.thread != 0) count(Loss::thread);
}

std::uint64_t PlainCalls::size_of(const cmt::Event& event) {
  const std::uint64_t bytes = event.bytes();
  if (bytes < sizes_.least) return count(Loss::size_zero), sizes_.least;
  if (bytes > sizes_.most) return count(Loss::size_large), sizes_.most;
  return bytes;
}

void PlainCalls::report_losses(std::string_view form, const Say& say) const {
  std::string text;
  for (std::size_t i = 0; i < loss_count; ++i) {
    if (losses_[i] == 0) continue;
    text += text.empty() ? " cannot express " : "; ";
    const LossWords& words = loss_words[i];
    text += cmt::output::with_commas(losses_[i]) + " " + std::string(losses_[i] == 1 ? words.one : words.several) +
            ": " + std::string(words.done);
  }
  if (!text.empty()) say(std::string(form) + text);
}

}  // namespace cmt::trace2cmt
