// Collects the curve and the address map of a picture, as plot_data.h describes.
#include "analysis/places/plot_data.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace cmt::analysis {

void Curve::begin_interval(const MemoryUse& now) {
  if (next_ != 0) done_.push_back({least_, most_});
  assert(done_.size() <= intervals_max);
  if (done_.size() == intervals_max) {
    for (std::size_t i = 0; i < intervals_max / 2; ++i) {
      const Interval& first = done_[2 * i];
      const Interval& second = done_[2 * i + 1];
      done_[i] = {second.least.live_bytes < first.least.live_bytes ? second.least : first.least,
                  second.most.live_bytes > first.most.live_bytes ? second.most : first.most};
    }
    done_.resize(intervals_max / 2);
    interval_ *= 2;
  }
  next_ = now.event + interval_;
  least_ = most_ = now;
}

std::vector<MemoryUse> Curve::finish() && {
  if (next_ != 0) done_.push_back({least_, most_});
  std::vector<MemoryUse> moments;
  for (const auto& [least, most] : done_) {
    moments.push_back(least.event < most.event ? least : most);
    if (least.event != most.event) moments.push_back(least.event < most.event ? most : least);
  }
  return moments;
}

void AddressMapper::count(const heap::PlacedBlock& block, std::uint64_t times) {
  const std::uint64_t first = block.address >> shift_, last = block.last() >> shift_;
  const std::uint64_t to_border = ((first + 1) << shift_) - block.address;
  change(first, {.bytes = times * (first == last ? block.size : to_border), .whole = 0, .blocks = times});
  if (last != first) {
    change(last, {.bytes = times * (block.last() - (last << shift_) + 1)});
    change(first + 1, {.whole = times});
    change(last, {.whole = -times});
  }
  while (changed_ > changes_max) coarsen();
}

AddressMapper::Stretch& AddressMapper::stretch_of(std::uint64_t bin) {
  const std::uint64_t number = bin / Stretch::bins;
  if (last_ < stretches_.size() && stretches_[last_].number == number) return stretches_[last_];
  if (stretches_.size() > changes_max + changes_max / 8) replace(changed_bins());  // keeps those with a changed bin
  const auto [found, is_new] = indices_.try_emplace(number, static_cast<std::uint32_t>(stretches_.size()));
  last_ = found->second;
  if (is_new) stretches_.push_back({.number = number});
  return stretches_[last_];
}

void AddressMapper::change(std::uint64_t bin, const Change& by) {
  Change& now = stretch_of(bin).changes[bin % Stretch::bins];
  changed_ -= now != Change{};
  now.bytes += by.bytes;
  now.whole += by.whole;
  now.blocks += by.blocks;
  changed_ += now != Change{};
}

/// Returns the bins that differ from the previous one, in order.
std::vector<AddressMapper::ChangedBin> AddressMapper::changed_bins() const {
  std::vector<const Stretch*> sorted;
  sorted.reserve(stretches_.size());
  for (const Stretch& stretch : stretches_) sorted.push_back(&stretch);
  std::sort(sorted.begin(), sorted.end(), [](const Stretch* a, const Stretch* b) { return a->number < b->number; });
  std::vector<ChangedBin> changed;
  changed.reserve(changed_);
  for (const Stretch* const stretch : sorted) {
    for (std::uint64_t i = 0; i < Stretch::bins; ++i) {
      if (stretch->changes[i] != Change{})
        changed.push_back({stretch->number * Stretch::bins + i, stretch->changes[i]});
    }
  }
  assert(changed.size() == changed_);
  return changed;
}

void AddressMapper::replace(const std::vector<ChangedBin>& changed) {
  stretches_.clear();
  indices_.clear();
  changed_ = 0;
  for (const auto& [bin, by] : changed) change(bin, by);
}

void AddressMapper::add_moment(const MemoryUse& now) {
  if (!moments_.empty() && moments_.back().event == now.event) moments_.pop_back();
  moments_.push_back({now.event, now.time_ns, now.allocated_bytes, {}});
  moments_.back().bins = bins_now();
}

/// Makes bins coarser until there are few enough.
std::vector<AddressMap::Bin> AddressMapper::bins_now() {
  for (;; coarsen()) {
    const std::vector<ChangedBin> changed = changed_bins();
    std::vector<AddressMap::Bin> bins;
    std::uint64_t whole = 0;
    for (std::size_t i = 0; i < changed.size() && bins.size() <= bins_max; ++i) {
      const auto& [bin, change] = changed[i];
      whole += change.whole;
      const std::uint64_t bytes = (whole << shift_) + change.bytes;
      if (bytes != 0 || change.blocks != 0) bins.push_back({bin, bytes});
      const std::uint64_t next = i + 1 < changed.size() ? changed[i + 1].bin : bin + 1;
      for (std::uint64_t between = bin + 1; whole != 0 && between < next && bins.size() <= bins_max; ++between)
        bins.push_back({between, whole << shift_});
    }
    if (bins.size() <= bins_max) return bins;
  }
}

/// Joins each two bins, now and at all moments. If a range of whole bins begins or ends with the second bin of two,
/// that half counts as bytes.
void AddressMapper::coarsen() {
  assert(shift_ < 63);
  const std::uint64_t half = std::uint64_t{1} << shift_;
  ++shift_;
  const std::vector<ChangedBin> before = changed_bins();
  replace({});
  for (const auto& [bin, by] : before) {
    const std::uint64_t in_second = by.whole * (bin % 2);
    change(bin / 2, {.bytes = by.bytes + in_second * half, .whole = by.whole - in_second, .blocks = by.blocks});
    if (in_second != 0) change(bin / 2 + 1, {.whole = in_second});
  }
  for (AddressMap::Moment& moment : moments_) {
    std::vector<AddressMap::Bin> bins;
    bins.swap(moment.bins);
    for (const AddressMap::Bin& bin : bins) moment.add_bytes(bin.bin / 2, bin.live_bytes);
    moment.bins.shrink_to_fit();
  }
}

void AddressMapper::drop_moments(std::uint64_t interval) {
  std::erase_if(moments_, [&](const AddressMap::Moment& moment) { return moment.event % interval != 0; });
}

std::vector<std::uint64_t> used_bins(const std::vector<AddressMap::Moment>& moments) {
  std::vector<std::uint64_t> used, more, both;
  for (const AddressMap::Moment& moment : moments) {  // by rising address
    more.clear();
    both.clear();
    for (const AddressMap::Bin& bin : moment.bins) more.push_back(bin.bin);
    std::set_union(used.begin(), used.end(), more.begin(), more.end(), std::back_inserter(both));
    used.swap(both);
  }
  return used;
}

AddressMap AddressMapper::finish() && {
  std::vector<std::uint64_t> used = used_bins(moments_);
  while (used.size() > rows_max) {
    coarsen();
    for (std::uint64_t& bin : used) bin /= 2;
    used.erase(std::unique(used.begin(), used.end()), used.end());
  }
  return {std::uint64_t{1} << shift_, std::move(moments_)};
}

}  // namespace cmt::analysis
