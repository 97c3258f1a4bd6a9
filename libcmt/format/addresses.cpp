// The address stream: where each allocation was placed.
//
// An address has 47 bits, but an allocator has habits. It hands out first the block of the same size that was freed
// last. In the trace of a compiler, two allocations in three get the top of that stack, and one in four a place below
// the top. Otherwise the next block is right after the last one, or near the last one of its size (a free list in
// address order). So an allocation costs one number:
//
//     place << 1              the address at that place among the freed of its class
//     depth << 1, address     none of the below fits: the address itself
//
//     difference << 2 | 1     from where a block right after the last allocation would begin
//     difference << 2 | 3     from the last allocation of its class
//
// The newest freed address is at place 0. After a realloc, 0 means "in place" and every other number is one more.
// Differences are zigzag numbers. Their unit is the largest power of two that divides all differences of the block. The
// address "right after" depends on how the allocator rounds sizes: the encoder tries four ways, and the stream's head
// states the one that fits best.
//
// Bytes an event, measured on two traces:
//
//                                                            cc1plus, 12.8 M events    python3, 11.7 M events
//     raw                                                    0.55                      0.52
//     after zstd -3                                          0.17                      0.01
//     after zstd -3, only differences from the last block    0.19                      0.31
//
// A search deeper than 256 places gains 1 %. A search of 64 places costs 13 %.
//
// Both sides run the same model, so the format bounds its memory. A class keeps at most 16,384 freed addresses if its
// blocks are small, else 256. A full class drops the older half.

#include "libcmt/format/addresses.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

namespace cmt::format {
namespace {

constexpr unsigned shift_limit = 12;
constexpr std::uint64_t difference_limit = std::uint64_t{1} << 61;

std::uint64_t difference(std::uint64_t address, std::uint64_t base) { return zigzag(address - base); }

}  // namespace

void AddressEncoder::add_result(const Event& event, const LiveBlock* old) {
  const std::uint8_t bias = old != nullptr ? 1 : 0;
  const std::uint64_t size = event.bytes();
  AddressModel::Class& own = model_.class_of(size);
  std::uint32_t place = AddressModel::depth;
  if (old != nullptr && event.address == old->address) {
    numbers_.put(0);
  } else if ((place = own.find(event.address)) < AddressModel::depth) {
    numbers_.put((std::uint64_t{place} << 1) + bias);
  } else {
    add_difference(event.address, own, bias);
  }
  model_.allocated(own, event.address, size, place);
}

void AddressEncoder::add_made(std::uint64_t address, std::uint64_t size) {
  AddressModel::Class& own = model_.class_of(size);
  const std::uint32_t place = own.find(address);
  if (place < AddressModel::depth) {
    numbers_.put(std::uint64_t{place} << 1);
  } else {
    add_difference(address, own, 0);
  }
  model_.allocated(own, address, size, place);
}

void AddressEncoder::defer(const Event& event, const LiveBlock* old) {
  using Sort = Deferred::Sort;
  if (event.old_tag != 0 && old == nullptr && !traits(event.kind).names) deferred_.push_back({0, Sort::given});
  if (event.tag != 0) deferred_.push_back({event.bytes(), old != nullptr ? Sort::in_place : Sort::made});
}

/// Encodes the deferred events as if they had not been deferred.
void AddressEncoder::put_deferred() {
  has_addresses_ = true;
  for (const Deferred& each : deferred_) {
    if (each.sort == Deferred::Sort::made) {
      add_made(0, each.size);
      continue;
    }
    numbers_.put(std::uint64_t{0});
    if (each.sort == Deferred::Sort::in_place)
      model_.allocated(model_.class_of(each.size), 0, each.size, AddressModel::depth);
  }
  deferred_.clear();
}

/// Drops the deferred events. The model keeps only the size of the last block that they made.
void AddressEncoder::drop_deferred() {
  const auto last = std::find_if(deferred_.rbegin(), deferred_.rend(),
                                 [](const Deferred& each) { return each.sort != Deferred::Sort::given; });
  if (last != deferred_.rend()) model_.allocated(model_.class_of(last->size), 0, last->size, AddressModel::depth);
  deferred_.clear();
}

void AddressEncoder::add_difference(std::uint64_t address, const AddressModel::Class& own, std::uint8_t bias) {
  const Difference item{numbers_.size(), address, model_.last_address(), model_.last_size(), own.last(), bias};
  differences_.push_back(item);
  for (unsigned i = 0; i < AddressModel::roundings; ++i) {
    const std::uint64_t from_last = item.address - AddressModel::after(item.last, item.last_size, i);
    hits_[i] += from_last == 0;
    last_bits_[i] |= from_last;
  }
  class_bits_ |= item.address - item.class_last;
}

unsigned AddressEncoder::common_shift(unsigned rounding) const {
  return static_cast<unsigned>(std::countr_zero(last_bits_[rounding] | class_bits_ | std::uint64_t{1} << shift_limit));
}

void AddressEncoder::put(VarintWriter& out, const Difference& item, unsigned rounding, unsigned shift) {
  const auto steps = [&](std::uint64_t base) {
    assert((item.address - base) % (std::uint64_t{1} << shift) == 0);
    return zigzag(static_cast<std::uint64_t>(static_cast<std::int64_t>(item.address - base) >> shift));
  };
  const std::uint64_t from_last = steps(AddressModel::after(item.last, item.last_size, rounding));
  const std::uint64_t from_class = steps(item.class_last);
  if (std::min(from_last, from_class) >= difference_limit) {
    out.put((std::uint64_t{AddressModel::depth} << 1) + item.bias);
    out.put(item.address);
  } else {
    out.put((from_last <= from_class ? from_last << 2 | 1 : from_class << 2 | 3) + item.bias);
  }
}

std::string AddressEncoder::finish() {
  drop_deferred();
  const std::string numbers = numbers_.take();
  std::string bytes;
  if (any_address_) bytes = put_all(numbers);
  differences_.clear();
  hits_ = last_bits_ = {};
  class_bits_ = 0;
  any_address_ = false;
  return bytes;
}

std::string AddressEncoder::put_all(std::string_view numbers) const {
  const auto rounding = static_cast<unsigned>(std::max_element(hits_.begin(), hits_.end()) - hits_.begin());
  const unsigned shift = common_shift(rounding);
  assert(rounding < AddressModel::roundings && shift <= shift_limit);
  VarintWriter out(numbers.size() + differences_.size() * 3);
  out.put(rounding);
  out.put(shift);
  std::size_t done = 0;
  for (const Difference& item : differences_) {
    assert(done <= item.before && item.before <= numbers.size());
    out.put(numbers.substr(done, item.before - done));
    put(out, item, rounding, shift);
    done = item.before;
  }
  out.put(numbers.substr(done));
  return out.take();
}

void AddressDecoder::start(std::string_view bytes, bool keyframe) {
  cursor_ = Cursor(bytes);
  present_ = !bytes.empty();
  if (keyframe) model_.reset();
  if (!present_) return;
  rounding_ = static_cast<unsigned>(cursor_.varint(AddressModel::roundings - 1, "the way to round"));
  shift_ = static_cast<unsigned>(cursor_.varint(shift_limit, "the common shift"));
}

void AddressDecoder::take_live(std::string_view table) {
  if (!table.empty()) live_ = format::take_live(table);
}

std::uint64_t AddressModel::after(std::uint64_t address, std::uint64_t size, unsigned rounding) {
  switch (rounding) {
    case 0:
      return address + std::max<std::uint64_t>(32, (size + 23) & ~std::uint64_t{15});
    case 1:
      return address + std::max<std::uint64_t>(16, (size + 15) & ~std::uint64_t{15});
    case 2:
      return address + std::max<std::uint64_t>(8, (size + 7) & ~std::uint64_t{7});
    default:
      return address + size;
  }
}

inline std::uint64_t AddressDecoder::result_address(const AddressModel::Class& own, const std::uint64_t* old_address,
                                                    std::uint32_t& place) {
  std::uint64_t code = cursor_.varint();
  if (old_address != nullptr && code-- == 0) return *old_address;
  if ((code & 1) == 0) {
    if (code >> 1 == AddressModel::depth) return cursor_.varint();
    if (code >> 1 > AddressModel::depth) throw WireError(cursor_.offset(), "a place that is too deep");
    place = static_cast<std::uint32_t>(code >> 1);
    if (!own.has(place)) throw WireError(cursor_.offset(), "no address was freed at that place");
    return own.at(place);
  }
  const std::uint64_t base =
      (code & 2) == 0 ? AddressModel::after(model_.last_address(), model_.last_size(), rounding_) : own.last();
  return base + (unzigzag(code >> 2) << shift_);
}

inline void AddressDecoder::make(Event& event, const std::uint64_t* old_address) {
  std::uint32_t place = AddressModel::depth;
  const std::uint64_t bytes = event.bytes();
  AddressModel::Class& own = model_.class_of(bytes);
  const std::uint64_t address = present_ ? result_address(own, old_address, place) : 0;
  event.address = address;
  model_.allocated(own, address, bytes, place);
  const LiveBlock made{event.tag, address, bytes};
  if (live_.insert(made)) return;
  live_.erase(event.tag);  // a stream that is damaged may name a block twice
  live_.insert(made);
}

void AddressDecoder::fill(Event& event) {
  event.address = event.old_address = 0;
  if (event.old_tag != 0) return fill_given(event);
  if (event.tag != 0) make(event, nullptr);
}

inline void AddressDecoder::fill_given(Event& event) {
  const bool ends = event.ends_block();
  const LiveBlock* const given = ends ? live_.erase(event.old_tag) : live_.find(event.old_tag);
  if (given != nullptr) event.old_address = given->address;
  const bool is_named = traits(event.kind).names;  // such a block has no part in the stream
  const bool is_known = given != nullptr && !is_named;
  const std::uint64_t old_size = is_known ? given->size : 0;
  if (!is_known && !is_named && present_) event.old_address = cursor_.varint();
  if (event.tag != 0) make(event, is_known ? &event.old_address : nullptr);
  if (is_known && ends && (event.tag == 0 || event.address != event.old_address)) {
    model_.freed(event.old_address, old_size);
  }
}

std::string put_live(std::span<const LiveBlock> by_tag) {
  std::string out;
  put_varint(out, by_tag.size());
  Tag tag = 0;
  std::uint64_t address = 0;
  for (const LiveBlock& block : by_tag) {
    put_varint(out, block.tag - tag);
    put_varint(out, block.size);
    put_varint(out, difference(block.address, address));
    tag = block.tag;
    address = block.address;
  }
  return out;
}

LiveBlocks take_live(std::string_view bytes) {
  Cursor cursor(bytes);
  LiveBlocks live;
  const std::uint64_t count = cursor.varint(bytes.size() / 3, "the number of live blocks");
  Tag tag = 0;
  std::uint64_t address = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    tag += cursor.varint();
    const std::uint64_t size = cursor.varint();
    address += unzigzag(cursor.varint());
    if (tag == 0 || !live.insert({tag, address, size})) throw WireError(cursor.offset(), "a tag that does not rise");
  }
  if (!cursor.at_end()) throw WireError(cursor.offset(), "bytes after the last block");
  return live;
}

namespace {

/// How many addresses are compared at once.
constexpr std::uint32_t group = 16;

using Lanes = std::uint32_t __attribute__((vector_size(16)));

Lanes load(const std::uint64_t* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

/// The lower halves of four addresses.
Lanes low_halves(const std::uint64_t* addresses) {
#if __has_builtin(__builtin_shufflevector)
  return __builtin_shufflevector(load(addresses), load(addresses + 2), 0, 2, 4, 6);
#else  // GCC 11
  return __builtin_shuffle(load(addresses), load(addresses + 2), Lanes{0, 2, 4, 6});
#endif
}

/// Returns a bit for each address of a group that has the lower half of `address`, the lowest bit for the last address.
/// One by one, an address that is not there would cost 256 comparisons.
std::uint32_t matches(const std::uint64_t* addresses, std::uint64_t address) {
  const auto low = static_cast<std::uint32_t>(address);
  const Lanes wanted{low, low, low, low}, bits{8, 4, 2, 1};
  const auto same = [&](std::uint32_t i, int shift) { return (low_halves(addresses + i) == wanted) & bits << shift; };
  const Lanes all = (same(0, 12) | same(4, 8)) | (same(8, 4) | same(12, 0));
  std::uint64_t halves[2];
  std::memcpy(halves, &all, sizeof halves);
  const std::uint64_t both = halves[0] | halves[1];
  return static_cast<std::uint32_t>(both | both >> 32);
}

}  // namespace

std::uint32_t AddressModel::Class::find_below(std::uint64_t address) const {
  assert(freed_.size() >= 2);
  const std::uint64_t* const newest = freed_.data() + freed_.size() - 1;
  const auto limit = static_cast<std::uint32_t>(std::min<std::size_t>(freed_.size(), depth));
  std::uint32_t begin = 0;
  for (; limit - begin >= group; begin += group) {
    for (std::uint32_t found = matches(newest - begin - (group - 1), address); found != 0; found &= found - 1) {
      const std::uint32_t place = begin + static_cast<std::uint32_t>(std::countr_zero(found));
      if (*(newest - place) == address) return place;  // nearly always
    }
  }
  for (; begin < limit; ++begin) {
    if (*(newest - begin) == address) return begin;
  }
  return depth;
}

void AddressModel::reset() {
  for (Class& each : classes_) each = Class{};
  last_address_ = last_size_ = 0;
}

std::uint32_t AddressModel::number_of_large(std::uint64_t size) {
  const std::uint64_t granules = size / 16 + (size % 16 + 23) / 16;
  const std::uint32_t number = small_classes + static_cast<std::uint32_t>(std::bit_width(granules));
  assert(number < class_count);
  return number;
}

void AddressModel::forget_half(std::vector<std::uint64_t>& freed) {
  freed.erase(freed.begin(), freed.begin() + static_cast<std::ptrdiff_t>(freed.size() / 2));
}

}  // namespace cmt::format
