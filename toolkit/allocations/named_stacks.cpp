#include "toolkit/allocations/named_stacks.h"

#include "cmt/error.h"
#include "toolkit/command/command_line.h"
#include "toolkit/symbols/name_frames.h"

namespace cmt::allocations {

StackTable named_stacks(const StackTable& stacks, const std::vector<FrameId>& frames, const Header& header,
                        const NamedStacksOptions& options) {
  StackTable named = stacks;
  symbols::NamingOptions naming{.perf_map = symbols::perf_map_of(header),
                                .start = symbols::start_of(header),
                                .say = [&](const std::string& message) { command::complain(options.tool, message); }};
  const auto& directories = options.debug_directories;
  naming.debug_directories.insert(naming.debug_directories.begin(), directories.begin(), directories.end());
  symbols::name_frames(named, frames, naming);
  return named;
}

void require_stacks(const StackTable& stacks, const Header& header, const std::string& path) {
  if (!header.has_stacks && stacks.node_count() == 1)
    throw FormatError(path, "call stacks were not recorded (cmttrace --stacks records them)");
}

}  // namespace cmt::allocations
