/// "did you mean": the known word that a mistyped word resembles.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cmt::command {

/// The known word that needs the fewest changes of letters to become `given`: at most one change for each three
/// letters. A swap of neighbours is one change. If there is none, the only known word that begins with `given`, if
/// `given` has two letters or more. Empty: no word resembles it.
std::string closest(std::string_view given, const std::vector<std::string>& known);

/// "; did you mean '--summary'?", where `before` is "--" and "summary" is the closest word. Empty if there is none.
std::string did_you_mean(std::string_view given, const std::vector<std::string>& known, std::string_view before = "");

}  // namespace cmt::command
