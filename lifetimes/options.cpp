#include "lifetimes/options.h"

#include <getopt.h>

const char help_text[] =
    R"(Usage: lifetimes [OPTION]... [FILE]

Annotates a trace, as text or .cmt, with the lifetimes of its blocks: behind
every call that ends a block, how many bytes it had asked for and how many
events ago it was made.

  free(81d3b83a0<6656>)                         # 16 bytes, allocated 1 lines ago

Without FILE, or where FILE is -, the trace comes from standard input.

  --clock=UNIT   what ages are counted in: events (as lines, the default), time
                 (ns, where it was recorded), bytes (allocated meanwhile)
  --leaks        at the end a comment line for every block that is still alive
  --totals       also how many bytes and blocks are alive after the call
  --strict       a defect in the trace is an error; else it is told and counted
  -h, --help     say this
  --version      say the version

Exit status: 0 done, 1 could not, 2 wrong use.
)";

namespace {

enum : int { option_strict = 256, option_version, option_clock, option_leaks, option_totals };

const option long_options[] = {{"clock", required_argument, nullptr, option_clock},
                               {"leaks", no_argument, nullptr, option_leaks},
                               {"totals", no_argument, nullptr, option_totals},
                               {"strict", no_argument, nullptr, option_strict},
                               {"version", no_argument, nullptr, option_version},
                               {"help", no_argument, nullptr, 'h'},
                               {nullptr, 0, nullptr, 0}};

/// What getopt_long found wrong with the argument that it has just seen.
[[noreturn]] void refuse(int found, char** argv) {
  const std::string argument = argv[optind - 1];
  if (found == ':') throw UsageError("a value is missing: " + argument);
  if (optopt >= 256 || argument.starts_with("--help")) throw UsageError("a value that does not belong: " + argument);
  if (optopt != 0) throw UsageError(std::string("unknown option -") + static_cast<char>(optopt));
  throw UsageError("unknown option " + argument);
}

cmt::heap::Clock::Unit parse_clock(const std::string& name) {
  const auto unit = cmt::heap::Clock::parse(name);
  if (!unit) throw UsageError("--clock: expected events, time or bytes, not " + name);
  return *unit;
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  opterr = 0;
  for (int found; (found = getopt_long(argc, argv, ":h", long_options, nullptr)) != -1;) {
    switch (found) {
      case 'h':
        options.help = true;
        break;
      case option_version:
        options.version = true;
        break;
      case option_strict:
        options.strict = true;
        break;
      case option_leaks:
        options.leaks = true;
        break;
      case option_clock:
        options.annotation.clock = parse_clock(optarg);
        break;
      case option_totals:
        options.annotation.totals = true;
        break;
      default:
        refuse(found, argv);
    }
  }
  if (argc - optind > 1) throw UsageError("more than one file: " + std::string(argv[optind + 1]));
  if (optind < argc) options.path = argv[optind];
  return options;
}
