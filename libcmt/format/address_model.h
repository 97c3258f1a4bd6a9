#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace cmt::format {

/// What both sides of the address stream know of the allocator that was traced. The essay is in addresses.cpp.
class AddressModel {
 public:
  /// Positions in a stack of freed addresses that are looked at.
  static constexpr std::uint32_t depth = 256;
  /// The number of ways to round a size.
  static constexpr unsigned roundings = 4;

  /// Blocks that are as good as of one size.
  class Class {
   public:
    /// The place of an address among those freed last, the newest first; `depth` where it is not there.
    std::uint32_t find(std::uint64_t address) const {
      if (!freed_.empty() && freed_.back() == address) return 0;
      return freed_.size() < 2 ? depth : find_below(address);
    }
    bool has(std::uint64_t place) const { return place < freed_.size(); }
    /// The address at that place, which there has to be.
    std::uint64_t at(std::uint64_t place) const { return freed_[freed_.size() - 1 - place]; }
    /// The address allocated last.
    std::uint64_t last() const { return last_; }

   private:
    friend class AddressModel;
    std::uint32_t find_below(std::uint64_t address) const;

    std::vector<std::uint64_t> freed_;  // the newest at the end
    std::uint64_t last_ = 0;
  };

  void reset();

  /// Fetches what an event about a block of that size will look at.
  void prefetch(std::uint64_t size) const {
    const std::vector<std::uint64_t>& freed = class_of(size).freed_;
    constexpr std::uintptr_t line = 64;
    const std::uintptr_t top = reinterpret_cast<std::uintptr_t>(freed.data()) + freed.size() * sizeof freed[0] - 1;
    __builtin_prefetch(reinterpret_cast<const void*>(top), 1);
    __builtin_prefetch(reinterpret_cast<const void*>(top - line), 1);
  }

  const Class& class_of(std::uint64_t size) const { return classes_[number_of(size)]; }
  Class& class_of(std::uint64_t size) { return classes_[number_of(size)]; }

  /// An allocation of a class was seen. `place` is where its address stood among the freed, or `depth`.
  void allocated(Class& own, std::uint64_t address, std::uint64_t size, std::uint32_t place) {
    if (place == 0) {
      own.freed_.pop_back();
    } else if (place < depth) {
      own.freed_.erase(own.freed_.end() - 1 - place);
    }
    own.last_ = last_address_ = address;
    last_size_ = size;
  }

  void freed(std::uint64_t address, std::uint64_t size) {
    if (address == 0) return;  // it was not recorded
    const std::uint32_t number = number_of(size);
    std::vector<std::uint64_t>& freed = classes_[number].freed_;
    if (freed.size() == (number < many_below ? many : few)) forget_half(freed);
    freed.push_back(address);
  }

  std::uint64_t last_address() const { return last_address_; }
  std::uint64_t last_size() const { return last_size_; }

  /// Where a block that follows one at `address` would begin, by a way to round sizes.
  static std::uint64_t after(std::uint64_t address, std::uint64_t size, unsigned rounding);

 private:
  static constexpr std::uint32_t small_classes = 4096;
  static constexpr std::uint32_t class_count = small_classes + 65;
  static constexpr std::uint32_t many_below = 128;
  static constexpr std::size_t many = 16384, few = 256;

  static std::uint32_t number_of(std::uint64_t size) {
    constexpr std::uint64_t small = small_classes * 16 - 24;
    return size <= small ? static_cast<std::uint32_t>((size + 23) / 16) : number_of_large(size);
  }
  static std::uint32_t number_of_large(std::uint64_t size);
  static void forget_half(std::vector<std::uint64_t>& freed);

  std::vector<Class> classes_ = std::vector<Class>(class_count);
  std::uint64_t last_address_ = 0;
  std::uint64_t last_size_ = 0;
};

}  // namespace cmt::format
