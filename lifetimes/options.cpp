#include "lifetimes/options.h"

#include <getopt.h>

#include <array>
#include <bitset>

namespace cmt::lifetimes {

const char help_text[] =
    R"(Usage: lifetimes [OPTION]... [FILE]
       lifetimes --merge [OPTION]... JSON...

Annotates a trace, as text or .cmt, with the lifetimes of its blocks: behind
every call that ends a block, how many bytes it had asked for and how many
events ago it was made.

  free(81d3b83a0<6656>)                         # 16 bytes, allocated 1 lines ago

Without FILE, or where FILE is -, the trace comes from standard input.

  --clock=UNIT   what ages are counted in: events (as lines, the default), time
                 (ns, where it was recorded), bytes (allocated meanwhile)
  --leaks        at the end a comment line for every block that is still alive
  --totals       also how many bytes and blocks are alive after the call

Instead of annotating:

  --summary      lifetimes by size, short-lived and temporary blocks, blocks
                 freed by another thread, reallocation chains, peak, leaks
  --counts       how often every pair occurs, in lines: count lifetime size
  --merge        adds summaries that --summary --json wrote
  --json         the summary as JSON
  --csv          the summary's sizes as comma-separated values

  --strict       a defect in the trace is an error; else it is told and counted
  -h, --help     say this
  --version      say the version

Exit status: 0 done, 1 could not, 2 wrong use.
)";

namespace {

enum : int { clock_value = 256, counts, csv, json, leaks, merging, strict, summary, totals, version, past_last };

const std::array<option, 12> long_options{{{"clock", required_argument, nullptr, clock_value},
                                           {"counts", no_argument, nullptr, counts},
                                           {"csv", no_argument, nullptr, csv},
                                           {"help", no_argument, nullptr, 'h'},
                                           {"json", no_argument, nullptr, json},
                                           {"leaks", no_argument, nullptr, leaks},
                                           {"merge", no_argument, nullptr, merging},
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

Options::Command command_of(const Given& given) {
  if (given.has(merging)) return Options::Command::merge;
  if (given.has(counts)) return Options::Command::count;
  const bool summarises = given.has(summary) || given.has(json) || given.has(csv);
  return summarises ? Options::Command::summarise : Options::Command::annotate;
}

void check_combination(const Given& given) {
  given.refuse_both(merging, {summary, counts, clock_value, strict, leaks, totals});
  given.refuse_both(counts, {summary, json, csv, leaks, totals});
  given.refuse_both(json, {csv, leaks, totals});
  given.refuse_both(csv, {leaks, totals});
  given.refuse_both(summary, {leaks, totals});
}

void take_paths(Options& options, int argc, char** argv) {
  if (optind < argc) options.paths.assign(argv + optind, argv + argc);
  if (options.paths.size() > 1 && options.command != Options::Command::merge) {
    throw UsageError("more than one file: " + options.paths[1]);
  }
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
    if (found == clock_value) options.clock = parse_clock(optarg);
    given.add(found);
  }
  check_combination(given);
  options.command = command_of(given);
  options.leaks = given.has(leaks);
  options.totals = given.has(totals);
  options.strict = given.has(strict);
  if (given.has(json)) options.form = Options::Form::json;
  if (given.has(csv)) options.form = Options::Form::csv;
  take_paths(options, argc, argv);
  return options;
}

}  // namespace cmt::lifetimes
