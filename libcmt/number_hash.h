// A hash for numbers that a file has chosen, against files that choose numbers which collide.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cmt {

/// A hash of numbers that a file has chosen, for tables that use its low bits as an index. Every bit of the number
/// changes the low bits. std::hash returns the number itself, and numbers of a file may all have the same low bits.
struct NumberHash {
  std::size_t operator()(std::uint64_t number) const {
    number = (number ^ number >> 32) * 0x9e3779b97f4a7c15;
    number = (number ^ number >> 29) * 0xbf58476d1ce4e5b9;
    return number ^ number >> 32;
  }
};

}  // namespace cmt
