// overhead: where blocks lie. Two commands on one command line: annotate a trace, or summarise it.

#include <csignal>
#include <cstdio>
#include <exception>

#include "overhead/commands.h"
#include "overhead/options.h"

namespace cmt::overhead {
namespace {

void run(const Options& options) {
  switch (options.command) {
    case Options::Command::annotate:
      return annotate(options);
    case Options::Command::summarise:
      return summarise(options);
    case Options::Command::help:
      return print(help_text);
    case Options::Command::version:
      return print("overhead " CMT_VERSION "\n");
  }
}

int guarded(int argc, char** argv) {
  try {
    run(parse_options(argc, argv));
    return 0;
  } catch (const UsageError& error) {
    say(error.what());
    std::fputs("Try 'overhead --help' for more information.\n", stderr);
    return 2;
  } catch (const std::exception& error) {
    say(error.what());
    return 1;
  }
}

}  // namespace
}  // namespace cmt::overhead

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  return cmt::overhead::guarded(argc, argv);
}
