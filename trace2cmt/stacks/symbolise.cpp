// Chooses the folders to search, and names all frames with toolkit/symbols.

#include "trace2cmt/stacks/symbolise.h"

#include <unistd.h>

#include "toolkit/output/numbers.h"
#include "toolkit/symbols/name_frames.h"
#include "toolkit/terminal/progress.h"

namespace cmt::trace2cmt {

cmt::StackTable symbolised(const cmt::StackTable& stacks, const cmt::Header& header,
                           const std::vector<std::string>& debug_directories, const std::string& root,
                           const std::function<void(const std::string&)>& say) {
  using cmt::output::with_commas;
  cmt::StackTable named = stacks;
  cmt::terminal::ProgressLine line(STDERR_FILENO);
  cmt::symbols::NamingOptions options{.root = root,
                                      .perf_map = cmt::symbols::perf_map_of(header),
                                      .start = cmt::symbols::start_of(header),
                                      .say =
                                          [&line, &say](const std::string& message) {
                                            line.clear();
                                            say(message);
                                          },
                                      .show = [&line](double share) { line.show_work("naming functions", share); }};
  if (!root.empty()) {
    options.debug_directories.insert(options.debug_directories.begin(), root + "/usr/lib/debug");
    options.perf_map.clear();  // its name has the number that the process has there
  }
  options.debug_directories.insert(options.debug_directories.begin(), debug_directories.begin(),
                                   debug_directories.end());
  const cmt::symbols::NamingCounts counts = name_all_frames(named, options);
  line.clear();
  if (counts.frames != 0) {
    say("of " + cmt::output::counted(counts.frames, "frame") + " without names " + with_commas(counts.with_function) +
        " got a function, " + with_commas(counts.with_line) + " a line");
  }
  return named;
}

}  // namespace cmt::trace2cmt
