#pragma once

#include <string>

namespace cmt::symbols {

/// A symbol's name as the source has it: "list::push(int)" of "_ZN4list4pushEi". C++ names, and Rust's of both forms.
/// All others stay as they are.
std::string demangled(const std::string& symbol);

}  // namespace cmt::symbols
