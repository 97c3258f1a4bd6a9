/// The functions that only hand memory on. Blocks are charged to their callers.
#pragma once

#include <string_view>

namespace cmt::analysis {

/// Returns whether a function only hands memory on, so that its caller is the one that allocates. The list of these
/// functions, by the names that people see in reports, is in allocation_functions.cpp. `file`, if it is known, is where
/// its code is.
bool is_allocation_function(std::string_view function, std::string_view file = {});

}  // namespace cmt::analysis
