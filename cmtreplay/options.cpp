#include "cmtreplay/options.h"

namespace cmt::replay {

using command::CommandLine;
using command::Option;
using command::UsageError;

const std::vector<Option> known_options{{"alloc", Option::Takes::values},
                                        {"new-trace", Option::Takes::nothing, 'v'},
                                        {"json"},
                                        {"runs", Option::Takes::value}};

Options options_of(const CommandLine& line) {
  Options options;
  options.allocators = line.values("alloc");
  if (options.allocators.empty()) options.allocators.emplace_back("libc");
  for (const std::string& name : options.allocators) {
    if (name.empty()) throw UsageError("--alloc needs a name");
  }
  options.file = line.file();
  options.runs = static_cast<unsigned>(line.number("runs", 5, 1, 1000));
  options.new_trace = line.has("new-trace");
  options.json = line.has("json");
  if (options.new_trace && options.allocators.size() > 1) {
    throw UsageError("-v writes the new trace of one allocator, and " + std::to_string(options.allocators.size()) +
                     " are given");
  }
  return options;
}

const char* const help_text = R"(Usage: cmtreplay [OPTION]... [FILE]

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

}  // namespace cmt::replay
