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

  /// Gets the table of the stacks of incoming events, borrows it, and returns the table of the stacks of emitted
  /// events. Called once, before the first event.
  virtual const cmt::StackTable& change_stacks(const cmt::StackTable& stacks) { return stacks; }

  /// Emits the events that replace an event in the output: none, the event itself, or others.
  virtual void filter(const cmt::Event& event, const Emit& emit) = 0;

  /// The next event has the number `event`, from 0, because the events between are damaged. `live` lives before it.
  virtual void skip_damage(std::uint64_t /*event*/, std::span<const cmt::LiveBlock> /*live*/) {}

  /// The first event has the number `event`, from 0. The blocks of `origins` are live before it.
  virtual void start_late(std::uint64_t /*event*/, const cmt::format::Origins& /*origins*/) {}

  /// Emits events after the last one.
  virtual void finish(const Emit&) {}

  /// Whether all further events will be dropped.
  virtual bool done() const { return false; }
};

/// Lets a slice of a trace through. First it allocates the blocks that are live at the begin of the slice, so that the
/// slice replays. Each block gets the pages that are known to be touched. Then comes a mark "slice FROM:TO". Each of
/// these allocations is as it was in the trace, with its time. So lifetimes in time stay true, and lifetimes in events
/// count from the begin of the slice. A slice of a sampled trace begins with the sampling interval. Memory: some 100
/// bytes a block that is live at the begin.
std::unique_ptr<Filter> make_slice_filter(cmt::trace::SliceRange range, const std::string& path);

/// Lets the events of some threads through, such that they replay by themselves:
///
/// | event | becomes |
/// |---|---|
/// | another thread frees a block of these threads | itself |
/// | another thread resizes a block of these threads | a free by that thread |
/// | these threads free a block of another thread | nothing |
/// | these threads resize a block of another thread | a realloc of NULL |
/// | pages of a block of these threads are touched | itself, whatever thread reports it |
/// | pages of another thread's block are touched | nothing |
/// | a mark of any thread, or a new sampling interval | itself |
///
/// A block belongs to the thread that allocated it; after a realloc, to the thread that resized it.
/// If one of the threads has no event, finish() throws std::runtime_error with the input's `path`. An empty path allows
/// it.
std::unique_ptr<Filter> make_thread_filter(std::set<std::uint32_t> threads, const std::string& path);

/// Rounds times down to multiples of a step, of at least 1 ns. Equal times take nearly no space in a .cmt. Times of
/// full resolution take most of the file.
std::unique_ptr<Filter> make_rounding_filter(std::uint64_t step_ns);

/// Removes from a trace the facts that identify its program or user, and keeps those that a replay needs.
///
/// | part | becomes |
/// |---|---|
/// | addresses | nothing: randomised addresses identify a run, and their layout a library's version |
/// | metadata | nothing, unless the key is known to be harmless (not program, command, pid, host, start) |
/// | call stacks | the same tree; modules lose path, build id, addresses and times; names are dropped |
/// | address of a frame | the next number in its module |
/// | labels of marks and threads | numbers, the same number for equal labels |
/// | times | times since the first event |
/// | kinds, sizes, alignments, threads' numbers, tags, usable sizes, settings of the allocator | themselves |
///
/// The rest is still a fingerprint: a person who has the program can recognise it.
std::unique_ptr<Filter> make_anonymising_filter();

/// A chain of filters. Each filter gets the events that the one before emits.
class FilterChain {
 public:
  /// `last` gets the events that the last filter emits.
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
  /// Calls skip_damage() of the first filter.
  void skip_damage(std::uint64_t event, std::span<const cmt::LiveBlock> live) {
    assert(!filters_.empty());
    filters_.front()->skip_damage(event, live);
  }
  /// Calls start_late() of the first filter.
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
