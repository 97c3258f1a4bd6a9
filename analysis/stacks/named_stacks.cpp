// Looks up the names of frames that a trace does not name.
#include "analysis/stacks/named_stacks.h"

#include <unistd.h>

#include <memory>

#include "cmt/error.h"
#include "toolkit/command/command_line.h"
#include "toolkit/terminal/progress.h"

namespace cmt::analysis {

namespace {

StackTable without_nodes(const StackTable& stacks) {
  StackTable copy;
  for (ModuleId module = 1; module < stacks.module_count(); ++module) copy.append_module(stacks.module(module));
  for (FrameId frame = 1; frame < stacks.frame_count(); ++frame) {
    if (copy.add_frame(stacks.frame(frame)) != frame) return stacks;  // it has one twice
  }
  if (!stacks.has_names()) return copy;
  for (FrameId frame = 0; frame < stacks.frame_count(); ++frame) {
    const std::span<const FrameName> names = stacks.names(frame);
    if (!names.empty()) copy.set_names(frame, names);
  }
  return copy;
}

}  // namespace

symbols::NamingOptions naming_options(const Header& header, const NamedStacksOptions& options) {
  const auto line = std::make_shared<terminal::ProgressLine>(STDERR_FILENO);
  symbols::NamingOptions naming{.perf_map = symbols::perf_map_of(header),
                                .start = symbols::start_of(header),
                                .say =
                                    [tool = options.tool, line](const std::string& message) {
                                      line->clear();
                                      command::complain(tool, message);
                                    },
                                .show = [line](double share) { line->show_work("naming functions", share); },
                                .ahead = options.ahead};
  const auto& directories = options.debug_directories;
  naming.debug_directories.insert(naming.debug_directories.begin(), directories.begin(), directories.end());
  return naming;
}

StackTable named_stacks(const StackTable& stacks, const std::vector<FrameId>& frames, const Header& header,
                        const NamedStacksOptions& options) {
  StackTable named = stacks;
  symbols::name_frames(named, frames, naming_options(header, options));
  return named;
}

StackTable named_frames(const StackTable& stacks, const std::vector<FrameId>& frames, const Header& header,
                        const NamedStacksOptions& options) {
  StackTable named = without_nodes(stacks);
  symbols::name_frames(named, frames, naming_options(header, options));
  return named;
}

void require_stacks(const StackTable& stacks, const Header& header, const std::string& path) {
  if (!header.has_stacks && stacks.node_count() == 1)
    throw FormatError(path, "call stacks were not recorded (cmttrace records them, unless --calls is given)");
}

}  // namespace cmt::analysis
