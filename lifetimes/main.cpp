// lifetimes: how long blocks live. Four commands on one command line: annotate a trace, summarise it, count its pairs
// of lifetime and size, or merge summaries.

#include <csignal>
#include <cstdio>
#include <exception>

#include "lifetimes/commands.h"
#include "lifetimes/options.h"

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
    case Options::Command::help:
      return print(help_text);
    case Options::Command::version:
      return print("lifetimes " CMT_VERSION "\n");
  }
}

int guarded(int argc, char** argv) {
  try {
    run(parse_options(argc, argv));
    return 0;
  } catch (const UsageError& error) {
    say(error.what());
    std::fputs("Try 'lifetimes --help' for more information.\n", stderr);
    return 2;
  } catch (const std::exception& error) {
    say(error.what());
    return 1;
  }
}

}  // namespace
}  // namespace cmt::lifetimes

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  return cmt::lifetimes::guarded(argc, argv);
}
