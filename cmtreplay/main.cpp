// cmtreplay: which allocator is best for a program, told from a trace of it.
//
// 1. Every allocator is found and tried, so that what cannot be used is said before anything runs.
// 2. The trace is read once and becomes operations of 8 bytes in shared memory (planner.h, prepared_trace.h).
// 3. Timed runs, each in a fresh worker with the allocator preloaded, in shuffled order (runs.h, worker.c).
// 4. A memory run for each, in which the worker stops at 100 marks and is looked at from outside (memory_run.h).
// 5. With -v one more run that keeps returned pointers, which become the new trace (new_trace.h).
// 6. The report, with the null allocator's figures beside: what the replay itself costs (report.h).
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <string>

#include "cmtreplay/new_trace.h"
#include "cmtreplay/options.h"
#include "cmtreplay/report.h"
#include "cmtreplay/source.h"
#include "output/numbers.h"
#include "output/progress.h"

namespace {

using namespace cmt::replay;

void say(const std::string& words) { std::cerr << "cmtreplay: " << words << std::endl; }

std::string_view format_name(cmt::Format format) {
  switch (format) {
    case cmt::Format::text:
      return "text";
    case cmt::Format::cmt:
      return "cmt";
    case cmt::Format::legacy_cmt:
      return "legacy_cmt";
  }
  return "";
}

std::vector<Allocator> find_all(AllocatorFinder& finder, const Options& options) {
  std::vector<Allocator> allocators;
  for (const std::string& name : options.allocators) allocators.push_back(finder.find(name));
  allocators.push_back(finder.find("null"));
  return allocators;
}

/// Addresses are never asked for: the replay has its own.
cmt::ReadOptions read_options(bool times) {
  cmt::ReadOptions options;
  options.times = times;
  options.addresses = options.usable = false;
  return options;
}

PreparedTrace prepare(cmt::Reader& reader, cmt::output::ProgressLine& line) {
  return PreparedTrace(reader, [&line](const cmt::Reader& now) {
    const std::string done = now.bytes_total() == 0 ? cmt::output::bytes_text(now.bytes_read())
                                                    : std::to_string(100 * now.bytes_read() / now.bytes_total()) + " %";
    line.show("reading, " + done);
  });
}

/// What of the trace is not replayed as it was recorded.
void say_what_is_left_out(const std::string& file, const TraceFacts& facts) {
  const auto note = [&file](std::uint64_t count, const char* what) {
    if (count != 0) say(file + ": " + cmt::output::with_commas(count) + " " + what);
  };
  note(facts.failed_calls, "calls were refused when recorded and are not replayed");
  note(facts.unknown_blocks, "events give back blocks that the trace does not know; such frees are not replayed");
  note(facts.defects, "defects in the trace");
  if (facts.truncated) say(file + ": broke off before its end; what is whole is replayed");
}

/// Whether a call of this name is in the trace.
bool uses(const TraceFacts& facts, const std::string& name) {
  for (std::size_t kind = 0; kind < facts.by_kind.size(); ++kind) {
    if (facts.by_kind[kind] != 0 && cmt::name(static_cast<cmt::Kind>(kind)) == name) return true;
  }
  return false;
}

void say_result(const Result& result, const TraceFacts& facts) {
  if (result.death) {
    const std::string event = cmt::output::with_commas(result.death->event);
    say(result.allocator.name + ": died at event " + event + " of " + cmt::output::with_commas(facts.events) + ": " +
        result.death->ending.text());
  }
  const std::uint64_t refused = result.timed.empty() ? 0 : result.timed.back().refused_calls;
  if (refused != 0) say(result.allocator.name + ": refused " + cmt::output::with_commas(refused) + " calls");
  for (const std::string& name : replaced_names(result.allocator)) {
    if (uses(facts, name)) say(result.allocator.name + ": has no " + name + "; made of what it has, without alignment");
  }
}

/// Writes to standard output as it is, so that a full disk is noticed.
void put(const std::string& text, std::FILE* file) {
  if (std::fwrite(text.data(), 1, text.size(), file) != text.size() || std::fflush(file) != 0)
    throw std::system_error(errno, std::generic_category(), "output");
}

/// False where the allocator died.
bool put_new_trace(const Stage& stage, const Allocator& allocator, Source& source) {
  const SharedMemory pointers("pointers", stage.trace.pointers() * sizeof(void*));
  if (const auto death = run_keeping_pointers(stage, allocator, pointers)) {
    say(allocator.name + ": died in the run for the new trace: " + death->ending.text());
    return false;
  }
  cmt::Reader reader(source.open(), source.name(), read_options(true));
  write_new_trace(reader, pointers, STDOUT_FILENO);
  return true;
}

int run(const Options& options) {
  AllocatorFinder finder(find_worker());
  const std::vector<Allocator> allocators = find_all(finder, options);
  cmt::output::ProgressLine line(STDERR_FILENO);
  Source source(options.file, options.new_trace);
  cmt::Reader reader(source.open(), source.name(), read_options(false));
  const PreparedTrace trace = prepare(reader, line);
  line.clear();
  say_what_is_left_out(source.name(), trace.facts());

  const Interrupts interrupts;
  const Stage stage{find_worker(), trace, interrupts};
  Runs runs = run_all(stage, allocators, options.runs, [&line](const std::string& text) { line.show(text); });
  line.clear();
  Result baseline = std::move(runs.results.back());
  runs.results.pop_back();
  const Report report{.file = source.name(),
                      .format = std::string(format_name(reader.header().format)),
                      .rounds = options.runs,
                      .trace = trace,
                      .results = std::move(runs.results),
                      .baseline = std::move(baseline),
                      .interrupted = runs.interrupted};
  put(options.json ? json_text(report) : table_text(report), options.new_trace ? stderr : stdout);

  bool good = !report.interrupted && !report.baseline.death;
  if (report.interrupted) say("interrupted; this is what is known so far");
  for (const Result& result : report.results) {
    say_result(result, trace.facts());
    good = good && !result.death;
  }
  if (good && options.new_trace) good = put_new_trace(stage, allocators.front(), source);
  return good ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  return cmt::command::run(
      count, arguments, {"cmtreplay", CMT_VERSION, help_text, known_options, [](const cmt::command::CommandLine& line) {
                           try {
                             return run(options_of(line));
                           } catch (const Interrupted&) {
                             return say("interrupted"), 1;
                           }
                         }});
}
