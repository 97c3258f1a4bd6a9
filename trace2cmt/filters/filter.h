/// The filters of a conversion (--slice, --thread, --anonymise, --time-resolution), and their chain.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cmt/event.h"
#include "cmt/header.h"
#include "cmt/stacks.h"
#include "libcmt/block_table.h"
#include "libcmt/format/origins.h"
#include "toolkit/trace/slice.h"

namespace cmt::trace2cmt {

/// Receives an event. The event's label is valid until the call returns.
using Emit = std::function<void(const cmt::Event&)>;

/// A step between the input and the sink: it drops, changes or adds events.
class Filter {
 public:
  virtual ~Filter() = default;

  /// Changes the header. Called once, before the first event.
  virtual void change_header(cmt::Header&) {}

  /// The table of the stacks that are emitted, where those that come are of this one, which is borrowed. Called once,
  /// before the first event.
  virtual const cmt::StackTable& change_stacks(const cmt::StackTable& stacks) { return stacks; }

  /// Emits what stands for an event in the output: nothing, the event, or others.
  virtual void filter(const cmt::Event& event, const Emit& emit) = 0;

  /// The next event is that of number `event`, from 0, before which these blocks are live: those between were damaged.
  virtual void skip_damage(std::uint64_t /*event*/, std::span<const cmt::LiveBlock> /*live*/) {}

  /// The first event is that of number `event`, from 0, before which these blocks are live.
  virtual void start_late(std::uint64_t /*event*/, const cmt::format::Origins& /*origins*/) {}

  /// Emits what follows the last event.
  virtual void finish(const Emit&) {}

  /// Whether all further events will be dropped.
  virtual bool done() const { return false; }
};

/// Lets a slice of a trace through. Blocks that are live at its begin are allocated first, so that the slice replays,
/// each with the pages that were touched, as far as it is known; then comes a mark "slice FROM:TO". Each of these
/// allocations is as it was in the trace, with its time: lifetimes in time stay true, lifetimes in events count from
/// the begin of the slice. Memory: some 100 bytes a block that is live at the begin.
std::unique_ptr<Filter> make_slice_filter(cmt::trace::SliceRange range, const std::string& path);

/// Lets the events of some threads through, such that they replay by themselves:
///
/// | event | becomes |
/// |---|---|
/// | another thread frees a block of these threads | itself |
/// | another thread resizes a block of these threads | a free by that thread |
/// | these threads free a block of another thread | nothing |
/// | these threads resize a block of another thread | a realloc of NULL |
/// | pages of a block of these threads are touched | itself, whatever thread told |
/// | pages of another thread's block are touched | nothing |
/// | a mark of any thread | itself |
///
/// A block belongs to the thread that allocated it; after a realloc, to the thread that resized it.
std::unique_ptr<Filter> make_thread_filter(std::set<std::uint32_t> threads);

/// Rounds times down to multiples of a step, of at least 1 ns. Equal times cost next to nothing in a .cmt, where those
/// of full resolution are most of the file.
std::unique_ptr<Filter> make_rounding_filter(std::uint64_t step_ns);

/// Removes from a trace what tells whose it is, and keeps what a replay needs.
///
/// Removed: addresses, since address space randomisation makes them identify a run, and a library's version by its
/// layout; the program, its command line, process, host and start, and all metadata that are not known to be harmless.
/// Of call stacks stay their tree, and which frames are of the same module: modules lose path, build id, addresses and
/// times, frames get the next number in their module for an address, and names are dropped.
/// Labels of marks and threads become numbers, equal ones equal; settings of the allocator stay. Times begin with 0 at
/// the first event. Kinds, sizes, alignments, threads' numbers, tags, differences of time and usable sizes stay. They
/// still are a fingerprint: a person who has the program can recognise it.
std::unique_ptr<Filter> make_anonymising_filter();

/// Filters one after the other: each gets what the one before emits.
class FilterChain {
 public:
  /// `last` gets what the last filter emits.
  FilterChain(std::vector<std::unique_ptr<Filter>> filters, Emit last) : filters_(std::move(filters)) {
    for (std::size_t i = 0; i < filters_.size(); ++i) {
      emits_.emplace_back([this, i](const cmt::Event& event) { filters_[i]->filter(event, emits_[i + 1]); });
    }
    emits_.push_back(std::move(last));
  }
  FilterChain(const FilterChain&) = delete;
  FilterChain& operator=(const FilterChain&) = delete;

  bool empty() const { return filters_.empty(); }
  void change_header(cmt::Header& header) {
    for (const auto& each : filters_) each->change_header(header);
  }
  const cmt::StackTable& change_stacks(const cmt::StackTable& stacks) {
    const cmt::StackTable* changed = &stacks;
    for (const auto& each : filters_) changed = &each->change_stacks(*changed);
    return *changed;
  }
  void filter(const cmt::Event& event) { emits_.front()(event); }
  /// Of the first filter.
  void skip_damage(std::uint64_t event, std::span<const cmt::LiveBlock> live) {
    assert(!filters_.empty());
    filters_.front()->skip_damage(event, live);
  }
  /// Of the first filter.
  void start_late(std::uint64_t event, const cmt::format::Origins& origins) {
    assert(!filters_.empty());
    filters_.front()->start_late(event, origins);
  }
  void finish() {
    assert(emits_.size() == filters_.size() + 1);
    for (std::size_t i = 0; i < filters_.size(); ++i) filters_[i]->finish(emits_[i + 1]);
  }
  bool done() const {
    return std::any_of(filters_.begin(), filters_.end(), [](const auto& each) { return each->done(); });
  }

 private:
  std::vector<std::unique_ptr<Filter>> filters_;
  std::vector<Emit> emits_;  // the i-th feeds the i-th filter, the last one is `last`
};

}  // namespace cmt::trace2cmt
