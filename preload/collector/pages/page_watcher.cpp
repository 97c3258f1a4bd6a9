// The loop of the page watcher, with its budget of processor time, and the blocks that it watches.

#include "preload/collector/pages/page_watcher.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <ctime>
#include <optional>
#include <utility>

namespace cmt::collector {
namespace {

constexpr std::uint32_t pages_ring = rings_max + 1;  // the watch thread's is rings_max
constexpr std::int64_t cost_share = 100, credit_max_ns = 2'000'000;
constexpr std::uint64_t age_share = 64;
constexpr std::uint64_t period_min_ns = 1'000'000, period_max_ns = 250'000'000;
constexpr std::size_t runs_at_once = 2000;        // of one event
constexpr std::uint64_t look_ns_max = 1'000'000;  // between the stamps of one look

std::uint64_t block_bytes(const Slot& record) { return record.body >> block_bytes_shift; }
std::uint64_t block_address(const Slot& record) { return record.head >> slot_address_shift; }

class PageWatcher {
 public:
  PageWatcher(RingMemory& memory, Backlog& backlog, const SessionState& state, LargeBlockHints& hints)
      : memory_(memory),
        backlog_(backlog),
        state_(state),
        hints_(hints),
        map_(static_cast<pid_t>(memory.start_facts().process)) {}

  void run() {
    std::uint64_t looked_ns = clock_ns();
    while (map_.is_open() && !state_.is_finished && state_.process_end == ProcessEnd::none) {
      const std::uint64_t now = clock_ns(), due = looked_ns + period_ns(now);
      if (blocks_.empty() || now < due) {
        wait(blocks_.empty() ? std::nullopt : std::optional(due - now));
      } else {
        look_at_all();
        const std::uint64_t before_ns = std::exchange(looked_ns, clock_ns());
        pay(now - before_ns, looked_ns - now);
      }
      blocks_.note(hints_.take());
    }
  }

 private:
  std::uint64_t period_ns(std::uint64_t now) const {
    const std::uint64_t age = now - std::min(memory_.start_facts().start_ns, now);
    const std::int64_t debt_ns = credit_ns_ < 0 ? -credit_ns_ : 0;
    return std::max(std::clamp(age / age_share, period_min_ns, period_max_ns),
                    static_cast<std::uint64_t>(debt_ns * cost_share));
  }

  void pay(std::uint64_t waited_ns, std::uint64_t cost_ns) {
    credit_ns_ += static_cast<std::int64_t>(waited_ns) / cost_share;
    credit_ns_ = std::min(credit_ns_, credit_max_ns) - static_cast<std::int64_t>(cost_ns);
  }

  void wait(std::optional<std::uint64_t> ns) const {
    pollfd fds[] = {{state_.finished_fd, POLLIN, 0}, {hints_.arrived_fd(), POLLIN, 0}};
    const std::uint64_t second = 1'000'000'000, least = ns.value_or(0);
    const timespec time{static_cast<time_t>(least / second), static_cast<long>(least % second)};
    ::ppoll(fds, 2, ns ? &time : nullptr, nullptr);
  }

  /// Looks at all blocks. The records of a look are put when the look is over; many blocks take several looks.
  void look_at_all() {
    if (__atomic_load_n(&memory_.control().paused, __ATOMIC_SEQ_CST) != 0) return;
    auto& blocks = blocks_.blocks();
    for (auto next = blocks.begin(); next != blocks.end();) {
      const std::uint64_t since = clock_stamp(memory_.start_facts()), until_ns = clock_ns() + look_ns_max;
      memory_.raise_clock(since);
      std::vector<PagesNews> found;
      while (next != blocks.end() && clock_ns() < until_ns) {
        auto& [address, block] = *next++;
        if (block.is_done) continue;
        auto runs = map_.read(address, block.bytes);
        if (!runs) {
          blocks_.set_done(block);  // the event at its end has its pages
          continue;
        }
        if (auto news = blocks_.note_runs(address, block, *runs)) found.push_back(std::move(*news));
      }
      const std::uint64_t stamp = clock_stamp(memory_.start_facts());
      memory_.raise_clock(stamp + 1);
      for (const PagesNews& news : found) put_report(news, since, stamp);
    }
  }

  void put_report(const PagesNews& news, std::uint64_t since, std::uint64_t stamp) {
    const std::vector<PageRun>& runs = news.runs;
    const std::uint64_t flags = news.is_first ? block_is_whole : 0, size = news.bytes << block_bytes_shift;
    std::size_t done = 0;
    do {
      const std::size_t count = std::min(runs.size() - done, runs_at_once);
      const bool has_more = done + count < runs.size();
      const std::uint64_t head = news.address << slot_address_shift;
      Packer records;
      records.append(record_stamp_high, stamp >> 32);
      records.append(record_since, since);
      records.append(head | record_block, size | flags | (has_more ? block_has_more : 0));
      for (std::size_t i = done; i < done + count; ++i) {
        const Slot slot = slot_of_page_run(runs[i].first, runs[i].count, false, runs[i].is_huge);
        records.append(slot.head, slot.body);
      }
      records.append(head | record_pages, stamp & 0xffffffff);
      backlog_.put({.ring = pages_ring, .records = records.finish()});
      done += count;
    } while (done < runs.size());
  }

  // Shared with the other threads.
  RingMemory& memory_;
  Backlog& backlog_;
  const SessionState& state_;
  LargeBlockHints& hints_;
  // The page watcher's own.
  std::int64_t credit_ns_ = credit_max_ns;  // processor time that looks may still take; negative: debt
  PageMap map_;
  WatchedBlocks blocks_;
};

}  // namespace

LargeBlockHints::LargeBlockHints() : arrived_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
LargeBlockHints::~LargeBlockHints() { ::close(arrived_fd_); }

void LargeBlockHints::put(std::vector<Slot>& records) {
  if (records.empty()) return;
  const std::lock_guard lock(mutex_);
  if (records_.empty() && !is_closed_) ::eventfd_write(arrived_fd_, 1);
  if (!is_closed_) records_.insert(records_.end(), records.begin(), records.end());
  records.clear();
}

std::vector<Slot> LargeBlockHints::take() {
  const std::lock_guard lock(mutex_);
  eventfd_t count = 0;
  if (!records_.empty()) ::eventfd_read(arrived_fd_, &count);
  return std::exchange(records_, {});
}

void LargeBlockHints::close() {
  const std::lock_guard lock(mutex_);
  records_.clear();
  is_closed_ = true;
}

void WatchedBlocks::note(const std::vector<Slot>& records) {
  if (records.empty()) return;
  ended_before_ = std::exchange(ended_, {});
  for (const Slot& record : records) {
    const std::uint64_t address = block_address(record);
    if ((record.body & block_discards) != 0) {
      note_discard(address, block_bytes(record));
    } else if ((record.body & block_ends) != 0) {
      if (!note_end(address)) ended_.insert(address);
    } else if (block_bytes(record) != 0 && ended_.erase(address) + ended_before_.erase(address) == 0) {
      note_begin(address, {block_bytes(record), (record.body & block_is_asked) != 0});
    }
  }
}

void WatchedBlocks::note_begin(std::uint64_t address, const Block& block) {
  note_end(address);
  blocks_[address] = block;
  ++undone_;
}

/// The blocks between two addresses have fewer pages than were seen.
void WatchedBlocks::note_discard(std::uint64_t begin, std::uint64_t bytes) {
  auto next = blocks_.lower_bound(begin + bytes);
  while (next != blocks_.begin()) {
    auto& [address, block] = *--next;
    if (address + block.bytes <= begin) return;
    undone_ += block.is_done;
    block.is_done = false;
    block.seen = {};
  }
}

bool WatchedBlocks::note_end(std::uint64_t address) {
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) return false;
  assert(found->second.is_done || undone_ != 0);
  if (!found->second.is_done) --undone_;
  blocks_.erase(found);
  return true;
}

std::optional<PagesNews> WatchedBlocks::note_runs(std::uint64_t address, Block& block,
                                                  const std::vector<PageRun>& runs) {
  PagesNews news{address, block.bytes, !std::exchange(block.was_seen, true), {}};
  block.seen.add(runs, [&](const PageRun& run) { news.runs.push_back(run); });
  const bool is_baseline = news.is_first && !block.was_asked;
  const std::uint64_t pages = (address % block_page_bytes + block.bytes + block_page_bytes - 1) / block_page_bytes;
  if (block.seen.has_all_below(pages)) set_done(block);
  return !news.runs.empty() || is_baseline ? std::optional(std::move(news)) : std::nullopt;
}

void WatchedBlocks::set_done(Block& block) {
  assert(!block.is_done && undone_ != 0);
  block.is_done = true;
  block.seen = {};
  --undone_;
}

void run_page_watcher(RingMemory& memory, Backlog& backlog, const SessionState& state, LargeBlockHints& hints) {
  const sched_param none{};
  ::sched_setscheduler(0, SCHED_BATCH,
                       &none);  // so that a wake-up does not take the processor from a thread of the program
  PageWatcher(memory, backlog, state, hints).run();
  hints.close();
}

}  // namespace cmt::collector
