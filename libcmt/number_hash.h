#pragma once

#include <cstddef>
#include <cstdint>

namespace cmt {

/// A hash of numbers that a file has chosen, for tables that take its low bits as a place: every bit of the number
/// changes them. The numbers themselves, which std::hash gives, may all have the same low bits.
struct NumberHash {
  std::size_t operator()(std::uint64_t number) const {
    number = (number ^ number >> 32) * 0x9e3779b97f4a7c15;
    number = (number ^ number >> 29) * 0xbf58476d1ce4e5b9;
    return number ^ number >> 32;
  }
};

}  // namespace cmt
