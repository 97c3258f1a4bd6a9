#include "overhead/options.h"

#include <getopt.h>

#include <array>
#include <bit>
#include <bitset>
#include <charconv>
#include <string_view>

namespace cmt::overhead {

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

Instead of annotating:

  --summary      live bytes, pages, gaps and pinned pages over time
  --json         the summary as JSON
  --csv          the summary's samples as comma-separated values

  --strict       a defect in the trace is an error; else it is told and counted
  -h, --help     say this
  --version      say the version

Exit status: 0 done, 1 could not, 2 wrong use.
)";

namespace {

enum : int { clock_value = 256, csv, huge_pages, json, leaks, page_size, strict, summary, totals, version, past_last };

const std::array<option, 12> long_options{{{"clock", required_argument, nullptr, clock_value},
                                           {"csv", no_argument, nullptr, csv},
                                           {"help", no_argument, nullptr, 'h'},
                                           {"huge-pages", no_argument, nullptr, huge_pages},
                                           {"json", no_argument, nullptr, json},
                                           {"leaks", no_argument, nullptr, leaks},
                                           {"page-size", required_argument, nullptr, page_size},
                                           {"strict", no_argument, nullptr, strict},
                                           {"summary", no_argument, nullptr, summary},
                                           {"totals", no_argument, nullptr, totals},
                                           {"version", no_argument, nullptr, version},
                                           {nullptr, 0, nullptr, 0}}};

/// The options that were given.
class Given {
 public:
  void add(int option) { bits_.set(index(option)); }
  bool has(int option) const { return bits_.test(index(option)); }

  /// Refuses the second where the first was given too.
  void refuse_both(int first, std::initializer_list<int> others) const {
    for (const int other : others) {
      if (has(first) && has(other)) throw UsageError(name(other) + " does not go with " + name(first));
    }
  }

 private:
  static std::size_t index(int option) { return static_cast<std::size_t>(option - clock_value); }
  static std::string name(int value) {
    for (const option& each : long_options) {
      if (each.val == value) return std::string("--") + each.name;
    }
    return {};
  }
  std::bitset<past_last - clock_value> bits_;
};

/// What getopt_long found wrong with the argument that it has just seen.
[[noreturn]] void refuse(int found, char** argv) {
  const std::string argument = argv[optind - 1];
  if (found == ':') throw UsageError("a value is missing: " + argument);
  if (optopt >= 256 || argument.starts_with("--help")) throw UsageError("a value that does not belong: " + argument);
  if (optopt != 0) throw UsageError(std::string("unknown option -") + static_cast<char>(optopt));
  throw UsageError("unknown option " + argument);
}

heap::Clock::Unit parse_clock(const std::string& name) {
  const auto unit = heap::Clock::parse(name);
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

Options::Command command_of(const Given& given) {
  const bool summarises = given.has(summary) || given.has(json) || given.has(csv);
  return summarises ? Options::Command::summarise : Options::Command::annotate;
}

void check_combination(const Given& given) {
  given.refuse_both(summary, {clock_value, huge_pages, leaks, totals});
  given.refuse_both(json, {csv, clock_value, huge_pages, leaks, totals});
  given.refuse_both(csv, {clock_value, huge_pages, leaks, totals});
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  Given given;
  opterr = 0;
  for (int found; (found = getopt_long(argc, argv, ":h", long_options.data(), nullptr)) != -1;) {
    if (found == 'h') return {.command = Options::Command::help};
    if (found == version) return {.command = Options::Command::version};
    if (found < 256) refuse(found, argv);
    if (found == clock_value) options.annotation.clock = parse_clock(optarg);
    if (found == page_size) options.annotation.page_shift = parse_page_shift(optarg);
    given.add(found);
  }
  check_combination(given);
  options.command = command_of(given);
  options.leaks = given.has(leaks);
  options.annotation.totals = given.has(totals);
  options.annotation.huge_pages = given.has(huge_pages);
  options.strict = given.has(strict);
  if (given.has(json)) options.form = Options::Form::json;
  if (given.has(csv)) options.form = Options::Form::csv;
  if (argc - optind > 1) throw UsageError("more than one file: " + std::string(argv[optind + 1]));
  if (optind < argc) options.path = argv[optind];
  return options;
}

}  // namespace cmt::overhead
