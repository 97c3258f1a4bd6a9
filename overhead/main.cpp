// overhead: where blocks lie. Annotates a trace, or summarises it.

#include "overhead/commands.h"
#include "overhead/options.h"
#include "toolkit/command/command_line.h"

namespace cmt::overhead {
namespace {

void run(const Options& options) {
  switch (options.command) {
    case Options::Command::annotate:
      return annotate(options);
    case Options::Command::summarise:
      return summarise(options);
  }
}

int run_line(const command::CommandLine& line) {
  run(parse_options(line));
  return 0;
}

}  // namespace
}  // namespace cmt::overhead

int main(int argc, char** argv) {
  using namespace cmt::overhead;
  return cmt::command::run(argc, argv, {"overhead", CMT_VERSION, help_text, known_options(), run_line});
}
