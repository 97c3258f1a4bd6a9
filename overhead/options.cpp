#include "overhead/options.h"

#include <getopt.h>

#include <bit>
#include <charconv>
#include <string_view>

const char help_text[] =
    R"(Usage: overhead [OPTION]... [FILE]

Annotates a trace, as text or .cmt, with where its blocks lie: behind every
call that makes or ends a block, the nearest live blocks on either side, the
gaps to them in bytes, its pages, and by how many pages the memory in use
grows or shrinks. A realloc ends one block and makes the next: both are told,
with "; " between them. The trace has to have addresses.

  malloc(20) = 81d2899a0<8>                     # prev 81d289980, gap 0, ...

Without FILE, or where FILE is -, the trace comes from standard input.

  --clock=UNIT   what ages are counted in: events (as lines, the default), time
                 (ns, where it was recorded), bytes (allocated meanwhile)
  --huge-pages   also by pages of 2 MiB
  --leaks        at the end a comment line for every block that is still alive
  --page-size=N  bytes of a page, a power of two; K, M and G may follow (4K)
  --totals       also how many bytes and blocks are alive after the call, and on
                 how many pages
  --strict       a defect in the trace is an error; else it is told and counted
  -h, --help     say this
  --version      say the version

Exit status: 0 done, 1 could not, 2 wrong use.
)";

namespace {

enum : int {
  option_strict = 256,
  option_version,
  option_clock,
  option_huge_pages,
  option_leaks,
  option_page_size,
  option_totals
};

const option long_options[] = {{"clock", required_argument, nullptr, option_clock},
                               {"huge-pages", no_argument, nullptr, option_huge_pages},
                               {"leaks", no_argument, nullptr, option_leaks},
                               {"page-size", required_argument, nullptr, option_page_size},
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

/// "4096", "4K", "2M": the power of two.
int parse_page_shift(const std::string& text) {
  std::uint64_t bytes = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, bytes);
  const auto unit = std::string_view("KMG").find(rest == end ? '\0' : *rest);
  const bool has_unit = end - rest == 1 && unit != std::string_view::npos;
  const bool sound =
      error == std::errc() && (rest == end || has_unit) && std::has_single_bit(bytes) && bytes < 1u << 31;
  if (!sound) throw UsageError("--page-size: expected a power of two, not " + text);
  const int shift = std::countr_zero(bytes) + (has_unit ? 10 * (static_cast<int>(unit) + 1) : 0);
  if (shift > 40) throw UsageError("--page-size: more than 1024G: " + text);
  return shift;
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
      case option_huge_pages:
        options.annotation.huge_pages = true;
        break;
      case option_page_size:
        options.annotation.page_shift = parse_page_shift(optarg);
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
