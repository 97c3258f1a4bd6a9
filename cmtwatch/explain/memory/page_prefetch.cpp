// Hands one range after the other to the thread that reads.
#include "cmtwatch/explain/memory/page_prefetch.h"

#include <cassert>
#include <new>
#include <system_error>

#include "toolkit/command/jobs.h"

namespace cmt::watch::explain {

PagePrefetch::~PagePrefetch() {
  if (!thread_.joinable()) return;
  if (range_.bytes() != 0) done_.acquire();
  ends_ = true;
  wanted_.release();
  thread_.join();
}

// Most heaps are too small to need the thread.
bool PagePrefetch::has_thread() {
  if (is_tried_) return thread_.joinable();
  is_tried_ = true;
  if (command::processors_allowed() == 1) return false;
  try {
    thread_ = std::thread([this] { read_all(); });
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

// Without memory for the call, the range counts as not read.
void PagePrefetch::read() noexcept {
  is_whole_ = false;
  try {
    is_whole_ = memory_.read_pieces(plan_.pieces) == plan_.bytes;
  } catch (const std::bad_alloc&) {
  }
}

void PagePrefetch::read_all() {
  for (;;) {
    wanted_.acquire();
    if (ends_) return;
    read();
    done_.release();
  }
}

void PagePrefetch::begin(Range range) {
  assert(range.bytes() != 0);
  const bool is_threaded = has_thread();
  if (is_threaded && range_.bytes() != 0) done_.acquire();
  range_ = {};  // what follows may throw
  bytes_.resize(range.bytes());
  plan_ = memory_.plan_read(range, bytes_.data());
  range_ = range;
  if (is_threaded)
    wanted_.release();
  else
    read();
}

bool PagePrefetch::take(std::vector<std::uint8_t>& bytes) {
  assert(range_.bytes() != 0);
  if (thread_.joinable()) done_.acquire();
  range_ = {};
  bytes.swap(bytes_);
  return is_whole_;
}

}  // namespace cmt::watch::explain
