#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace cmt::output {

/// The last `width` numbers as columns of eight heights, from 0 up to the largest of them: "▁▂▅█". UTF-8, one code
/// point a number; fewer numbers give a shorter line.
std::string sparkline(std::span<const std::uint64_t> numbers, std::size_t width);

}  // namespace cmt::output
