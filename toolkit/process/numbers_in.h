#pragma once

#include <string>
#include <vector>

namespace cmt::process {

/// The names in a folder that are numbers, ascending. Empty where it cannot be listed.
std::vector<int> numbers_in(const std::string& folder);

}  // namespace cmt::process
