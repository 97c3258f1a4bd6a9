// lifetimes: how long blocks live. Four commands on one command line: annotate a trace, summarise it, count its pairs
// of lifetime and size, or merge summaries.

#include "lifetimes/commands.h"
#include "lifetimes/options.h"
#include "toolkit/command/command_line.h"

namespace cmt::lifetimes {
namespace {

void run(const Options& options) {
  switch (options.command) {
    case Options::Command::annotate:
      return annotate(options);
    case Options::Command::summarise:
      return summarise(options);
    case Options::Command::count:
      return count(options);
    case Options::Command::merge:
      return merge(options);
  }
}

int run_line(const command::CommandLine& line) {
  run(parse_options(line));
  return 0;
}

}  // namespace
}  // namespace cmt::lifetimes

int main(int argc, char** argv) {
  using namespace cmt::lifetimes;
  return cmt::command::run(argc, argv, {"lifetimes", CMT_VERSION, help_text, known_options(), run_line});
}
