/// Tests that damage each place of a file read it many thousand times. For every change, builds with sanitizers damage
/// each 29th place only. With CMT_DAILY, and without sanitizers, it is each one.
#pragma once

#include <cstddef>

namespace cmt::fixture {

#ifdef CMT_SAMPLED_PLACES
constexpr std::size_t place_step = 29;  // it has no common factor with 8, so that each bit of a byte has its turn
#else
constexpr std::size_t place_step = 1;
#endif

}  // namespace cmt::fixture
