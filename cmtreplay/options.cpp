// The one file that includes Boost.Program_options: a translation unit with it costs 4.4 s.
#include "cmtreplay/options.h"

#include <boost/program_options.hpp>

namespace cmt::replay {
namespace {

namespace po = boost::program_options;

constexpr unsigned runs_max = 1000;

po::options_description described() {
  po::options_description options;
  options.add_options()("alloc", po::value<std::vector<std::string>>()->composing())("new-trace,v", "")("json", "")(
      "runs", po::value<std::string>())("help,h", "")("version", "");
  return options;
}

unsigned runs_of(const std::string& text) {
  const bool digits = !text.empty() && text.size() <= 4 && text.find_first_not_of("0123456789") == text.npos;
  const unsigned runs = digits ? static_cast<unsigned>(std::stoul(text)) : 0;
  if (runs == 0 || runs > runs_max) throw UsageError("--runs is a number from 1 to 1000, not '" + text + "'");
  return runs;
}

po::variables_map parsed(int count, const char* const* arguments) {
  po::options_description all = described();
  all.add_options()("file", po::value<std::vector<std::string>>());
  po::positional_options_description positions;
  positions.add("file", -1);
  po::command_line_parser parser(count, arguments);
  parser.options(all).positional(positions);
  parser.style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing);
  po::variables_map values;
  po::store(parser.run(), values);
  return values;
}

Options options_of(const po::variables_map& values) {
  Options options;
  if (values.count("alloc")) options.allocators = values["alloc"].as<std::vector<std::string>>();
  if (options.allocators.empty()) options.allocators.emplace_back("libc");
  for (const std::string& name : options.allocators) {
    if (name.empty()) throw UsageError("--alloc needs a name");
  }
  if (values.count("runs")) options.runs = runs_of(values["runs"].as<std::string>());
  options.new_trace = values.count("new-trace") != 0;
  options.json = values.count("json") != 0;
  options.help = values.count("help") != 0;
  options.version = values.count("version") != 0;
  const auto files =
      values.count("file") ? values["file"].as<std::vector<std::string>>() : std::vector<std::string>{"-"};
  if (files.size() > 1) throw UsageError("one trace at a time, not also '" + files[1] + "'");
  options.file = files[0];
  if (options.new_trace && options.allocators.size() > 1)
    throw UsageError("-v writes the new trace of one allocator, and " + std::to_string(options.allocators.size()) +
                     " are given");
  return options;
}

}  // namespace

Options parse_options(int count, const char* const* arguments) {
  try {
    return options_of(parsed(count, arguments));
  } catch (const po::error& error) {
    throw UsageError(error.what());
  }
}

std::vector<std::string> option_names() {
  std::vector<std::string> names;
  const po::options_description all = described();
  for (const auto& option : all.options()) names.push_back(option->long_name());
  return names;
}

const char* help_text() {
  return R"(Usage: cmtreplay [OPTION]... [FILE]

Replays a trace (text, .cmt or legacy .cmt; standard input without FILE or for
-) on one allocator or several, each run in a fresh process, and says what time
and memory they took: a table on standard output, fastest first.

  --alloc=NAME   an allocator to replay on; may be given more than once, and
                 ratios are to the first. NAME is one of
                   libc      the process's own (the default)
                   null      hands out addresses that nobody touches: what the
                             replay itself costs; always shown as the last line
                   jemalloc, tcmalloc, mimalloc, tbb
                             found through the loader, if installed
                   a path    /opt/my.so, ./my.so, my.so in this folder
                   a soname  libjemalloc.so.2, found through the loader
  --runs=N       timed runs of each allocator, 1 to 1000 (default 5)
  --json         write JSON (schema cmt.replay/1): all samples, and memory at
                 100 marks along the trace
  -v, --new-trace
                 write the trace as text with the addresses that this allocator
                 returned; the table then goes to standard error
  -h, --help     this text
  --version      the version

Columns: time, spread and CPU are the median, least to most and CPU time of the
timed runs; ns/call the time of one call; peak resident the allocator's own
memory, from a run apart; resident/live that over the trace's peak live bytes;
faults the page faults of a run. Calls that were refused when recorded are left
out. Everything runs on one thread, in recorded order.

Exit status: 0 done, 1 an allocator or the trace could not be used, or an
allocator crashed; 2 wrong use.
)";
}

}  // namespace cmt::replay
