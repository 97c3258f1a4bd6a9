// Checks that every number is within the bounds of its class.

#include "libcmt/heap/log_linear.h"

#include <doctest/doctest.h>

using cmt::heap::AgeClasses;
using cmt::heap::SizeClasses;

TEST_CASE("log-linear classes: each begins after the end of the one before, and both ends belong to it") {
  int wrong = SizeClasses::low(0) != 0;
  for (std::size_t i = 0; i < SizeClasses::count; ++i) {
    wrong += SizeClasses::index(SizeClasses::low(i)) != i;
    wrong += SizeClasses::index(SizeClasses::high(i)) != i;
    if (i > 0) wrong += SizeClasses::low(i) != SizeClasses::high(i - 1) + 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("log-linear classes: the last one ends with the last number") {
  CHECK(AgeClasses::index(~std::uint64_t{0}) == AgeClasses::count - 1);
  CHECK(AgeClasses::high(AgeClasses::count - 1) == ~std::uint64_t{0});
}

TEST_CASE("log-linear classes: a class is never wider than an eighth of what is in it") {
  int wrong = 0;
  for (std::size_t i = 8; i < AgeClasses::count; ++i) {
    wrong += AgeClasses::high(i) - AgeClasses::low(i) >= AgeClasses::low(i) / 8;
  }
  CHECK(wrong == 0);
}
