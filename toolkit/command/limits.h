/// The list of --fail-if: by how much each figure of a comparison may be worse.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cmt::command {

/// How much worse a figure may be: "peak+2%" is the figure peak and the share 0.02.
struct Limit {
  std::string figure;
  double share = 0;
};

/// Parses "time+3%,peak+2%". Each of `figures` may occur once. Returns nothing for any other text.
std::optional<std::vector<Limit>> parse_limits(std::string_view text, const std::vector<std::string>& figures);

}  // namespace cmt::command
