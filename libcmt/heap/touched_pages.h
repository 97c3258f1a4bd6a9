// Touched and resident pages of live blocks: from events to bytes, and back to events.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <iterator>
#include <map>
#include <unordered_map>

#include "cmt/event.h"

namespace cmt::heap {

/// The bytes of its block that an event of the kind touch or resident reports, from `begin` to before `end`.
struct RunBytes {
  std::uint64_t begin = 0, end = 0;
  bool is_wrong = false;  ///< pages are beyond the block's end, or have an impossible size
};

/// `address` is the block's; 0 if it is not known: then a first page counts as a whole one.
inline RunBytes bytes_of(const Event& run, std::uint64_t address, std::uint64_t size) {
  if (!std::has_single_bit(run.alignment) || run.size >= std::max<std::uint64_t>(size, 1)) return {0, 0, true};
  if (run.count == 0) return {run.size, size, false};
  // The bytes from the begin of the page to the begin of the block.
  const std::uint64_t before = run.size == 0 ? address & (run.alignment - 1) : 0;
  const std::uint64_t pages = (size - run.size + before + run.alignment - 1) / run.alignment;
  // Without the address, a first page may hold as little as a byte of the block.
  const bool may_be_one_more = run.size == 0 && address == 0;
  if (run.count >= pages) return {run.size, size, run.count > pages + may_be_one_more};
  return {run.size, run.size + run.count * run.alignment - before, false};
}

/// Whether an event reports all of its block as resident: so a recorder describes a block about whose pages it did not
/// ask.
inline bool is_of_all_resident(const Event& run) {
  return run.kind == Kind::resident && run.size == 0 && run.count == 0;
}

/// The bytes of its block that an event of the kind discard has given back.
inline RunBytes discarded_bytes_of(const Event& discard, std::uint64_t size) {
  if (discard.size >= size || discard.count == 0) return {0, 0, true};
  return {discard.size, discard.size + std::min(discard.count, size - discard.size),
          discard.count > size - discard.size};
}

/// The bytes of live blocks that events reported as touched, or as resident before. Memory: some 150 bytes for each
/// block with such events, and 80 for each run that does not follow another.
class TouchedPages {
 public:
  /// `keeps_kinds`: runs of different kinds or page sizes stay apart. Else adjacent runs are joined. This bounds the
  /// time of a trace that reports every second page of a large block and then the whole block, again and again.
  explicit TouchedPages(bool keeps_kinds = false) : keeps_kinds_(keeps_kinds) {}

  /// A run, or several adjacent ones.
  struct Run {
    std::uint64_t end = 0;
    Kind kind = Kind::touch;
    std::uint64_t page_size = 0;
  };
  /// The runs of a block by their begin. They do not overlap.
  using Runs = std::map<std::uint64_t, Run>;

  /// Adds a run of a live block of this size; bytes that are known keep their run. Calls `change(begin, end, added)`
  /// with each gap between runs that is removed, and each that remains. At first a block is one gap.
  template <class Change>
  void add(Tag tag, std::uint64_t begin, const Run& run, std::uint64_t size, Change change) {
    Runs& runs = blocks_[tag];
    assert(begin >= run.end || run.end <= size);
    for (std::uint64_t at = begin; at < run.end;) {
      const auto next = runs.upper_bound(at);
      const std::uint64_t gap_begin = next == runs.begin() ? 0 : std::prev(next)->second.end;
      if (gap_begin > at) {
        at = gap_begin;
        continue;
      }
      const std::uint64_t gap_end = next == runs.end() ? size : next->first, end = std::min(run.end, gap_end);
      change(gap_begin, gap_end, false);
      if (gap_begin != at) change(gap_begin, at, true);
      if (end != gap_end) change(end, gap_end, true);
      insert(runs, next, at, {end, run.kind, run.page_size});
      at = end;
    }
  }

  void add(Tag tag, std::uint64_t begin, const Run& run, std::uint64_t size) {
    add(tag, begin, run, size, [](std::uint64_t, std::uint64_t, bool) {});
  }

  /// Adds the run that an event reports; `bytes` are those of bytes_of().
  template <class Change>
  void add(const Event& event, const RunBytes& bytes, std::uint64_t size, Change change) {
    add(event.old_tag, bytes.begin, {bytes.end, event.kind, event.alignment}, size, change);
  }

  void add(const Event& event, const RunBytes& bytes, std::uint64_t size) {
    add(event.old_tag, bytes.begin, {bytes.end, event.kind, event.alignment}, size);
  }

  /// Removes bytes of a block from its runs. A cut run has pages of 4,096 bytes.
  void drop(Tag tag, const RunBytes& dropped) {
    const auto block = blocks_.empty() ? blocks_.end() : blocks_.find(tag);
    if (block == blocks_.end() || dropped.begin >= dropped.end) return;
    Runs& runs = block->second;
    auto at = runs.upper_bound(dropped.begin);
    if (at != runs.begin()) --at;
    while (at != runs.end() && at->first < dropped.end) {
      const std::uint64_t begin = at->first;
      const Run run = at->second;
      if (run.end <= dropped.begin) {
        ++at;
        continue;
      }
      at = runs.erase(at);
      --runs_;
      const auto keep = [&](std::uint64_t from, std::uint64_t end) {
        if (from >= end) return;
        runs.emplace_hint(at, from, Run{end, run.kind, cut_page_size});
        ++runs_;
      };
      keep(begin, dropped.begin);
      keep(dropped.end, run.end);
    }
  }
  void drop(const Event& discard, std::uint64_t size) { drop(discard.old_tag, discarded_bytes_of(discard, size)); }

  /// Calls `visit(begin, end)` with each gap of a block.
  template <class Visit>
  void for_each_gap(Tag tag, std::uint64_t size, Visit visit) const {
    std::uint64_t begin = 0;
    if (const Runs* const runs = find(tag)) {
      for (const auto& [run_begin, run] : *runs) {
        if (begin < run_begin) visit(begin, run_begin);
        begin = run.end;
      }
    }
    if (begin < size) visit(begin, size);
  }

  /// Calls `emit(event)` for each run of the block that `made` makes: first the resident runs, then the touched ones.
  /// The events have the block's thread and time, because TouchedPages does not keep the times of touches. Requires
  /// `keeps_kinds`.
  template <class Emit>
  void for_each_event(const Event& made, Emit emit) const {
    assert(keeps_kinds_);
    const Runs* const runs = find(made.tag);
    if (runs == nullptr) return;
    for (const Kind kind : {Kind::resident, Kind::touch}) {
      for (const auto& [begin, run] : *runs) {
        if (run.kind == kind) emit(event_of(made, begin, run));
      }
    }
  }

  /// The runs of a block; null if there are none.
  const Runs* find(Tag tag) const {
    const auto found = blocks_.empty() ? blocks_.end() : blocks_.find(tag);
    return found == blocks_.end() ? nullptr : &found->second;
  }

  /// Whether any of these bytes of a block is in a run.
  bool has_any(Tag tag, std::uint64_t begin, std::uint64_t end) const {
    const Runs* const runs = find(tag);
    if (runs == nullptr) return false;
    const auto next = runs->lower_bound(end);
    return next != runs->begin() && std::prev(next)->second.end > begin;
  }

  /// The number of runs of all blocks.
  std::size_t runs() const { return runs_; }

  /// Drops the blocks of which `keep(tag)` is false.
  template <class Keep>
  void keep_only(Keep keep) {
    std::erase_if(blocks_, [&](const auto& block) {
      if (keep(block.first)) return false;
      runs_ -= block.second.size();
      return true;
    });
  }

  void end_block(Tag tag) {
    const auto block = blocks_.empty() ? blocks_.end() : blocks_.find(tag);
    if (block == blocks_.end()) return;
    assert(runs_ >= block->second.size());
    runs_ -= block->second.size();
    blocks_.erase(block);
  }

 private:
  static constexpr std::uint64_t cut_page_size = 4096;

  static Event event_of(const Event& made, std::uint64_t begin, const Run& run) {
    const std::uint64_t pages = (run.end - begin + run.page_size - 1) / run.page_size;
    return {.kind = run.kind,
            .thread = made.thread,
            .size = begin,
            .count = run.end == made.bytes() ? 0 : pages,
            .alignment = run.page_size,
            .old_tag = made.tag,
            .old_address = made.address,
            .time_ns = made.time_ns};
  }

  bool is_like(const Run& a, const Run& b) const {
    return !keeps_kinds_ || (a.kind == b.kind && a.page_size == b.page_size);
  }

  void insert(Runs& runs, Runs::iterator next, std::uint64_t begin, Run run) {
    assert(begin < run.end && (next == runs.end() || run.end <= next->first));
    if (next != runs.end() && next->first == run.end && is_like(next->second, run)) {
      run.end = next->second.end;
      next = runs.erase(next);
      --runs_;
    }
    if (next != runs.begin()) {
      const auto before = std::prev(next);
      if (before->second.end == begin && is_like(before->second, run)) return void(before->second.end = run.end);
    }
    runs.emplace_hint(next, begin, run);
    ++runs_;
  }

  bool keeps_kinds_;
  std::unordered_map<Tag, Runs> blocks_;
  std::size_t runs_ = 0;
};

}  // namespace cmt::heap
