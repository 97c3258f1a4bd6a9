#include "overhead/plot_data.h"

#include <algorithm>

namespace cmt::overhead {

void Curve::begin_interval(const MemoryUse& now) {
  if (next_ != 0) done_.push_back({least_, most_});
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

void AddressMapper::add_moment(const MemoryUse& now, const heap::AddressIndex& live) {
  if (!moments_.empty() && moments_.back().event == now.event) moments_.pop_back();
  moments_.push_back({now.event, now.time_ns, {}});
  live.for_each([this](const heap::PlacedBlock& block) { add_block(block); });
  while (moments_.back().bins.size() > bins_max) coarsen();
}

/// Adds a block to the last moment, to one bin or several.
void AddressMapper::add_block(const heap::PlacedBlock& block) {
  AddressMap::Moment& moment = moments_.back();
  while ((block.last() >> shift_) - (block.address >> shift_) >= bins_max || moment.bins.size() > 2 * bins_max) {
    coarsen();
  }
  const std::uint64_t last = block.last() >> shift_;
  for (std::uint64_t bin = block.address >> shift_; bin <= last; ++bin) {
    const std::uint64_t begin = std::max(block.address, bin << shift_);
    const std::uint64_t end = std::min(block.last(), (bin << shift_) + ((std::uint64_t{1} << shift_) - 1));
    moment.add_bytes(bin, block.size == 0 ? 0 : end - begin + 1);
  }
}

/// Joins each two bins, at all moments.
void AddressMapper::coarsen() {
  ++shift_;
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
  std::vector<std::uint64_t> used;
  for (const AddressMap::Moment& moment : moments) {
    for (const AddressMap::Bin& bin : moment.bins) used.push_back(bin.bin);
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
  }
  return used;
}

AddressMap AddressMapper::finish() && {
  while (used_bins(moments_).size() > rows_max) coarsen();
  return {std::uint64_t{1} << shift_, std::move(moments_)};
}

}  // namespace cmt::overhead
