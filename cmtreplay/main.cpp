// cmtreplay: which allocator is best for a program, told from a trace of it.
//
// 1. Every allocator is found and tried, so that what cannot be used is said before anything runs.
// 2. The trace is read once and becomes operations of 8 bytes in shared memory, where that is not too much; else it is
//    read again for every run (planner.h, router.h, prepared_trace.h, feed.h).
//    With --verify one run of each allocator in which every call is checked (verification.h), and that is all.
// 3. Timed runs, each in a fresh worker with the allocator preloaded, in shuffled order (runs.h, worker.c).
// 4. A memory run for each, in which the worker stops at 100 marks and is looked at from outside (memory_run.h).
// 5. With -v or -o one more run that keeps returned pointers, which become the new trace (new_trace.h).
// 6. The report, with the null allocator's figures beside: what the replay itself costs (report.h).
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <string>

#include "cmtreplay/free_memory.h"
#include "cmtreplay/options.h"
#include "cmtreplay/plan/trace_source.h"
#include "cmtreplay/report/new_trace.h"
#include "cmtreplay/report/report.h"
#include "cmtreplay/report/report_details.h"
#include "cmtreplay/report/verification.h"
#include "toolkit/command/open_trace.h"
#include "toolkit/output/numbers.h"
#include "toolkit/terminal/progress.h"

namespace {

using namespace cmt::replay;

void say(const std::string& words) { std::cerr << "cmtreplay: " << words << std::endl; }

std::vector<Allocator> find_all(AllocatorFinder& finder, const Options& options) {
  std::vector<Allocator> allocators;
  for (const std::string& name : options.allocators) allocators.push_back(finder.find(name));
  allocators.push_back(finder.find("null"));
  return allocators;
}

/// Addresses are never asked for: the replay has its own.
cmt::ReadOptions read_options() {
  cmt::ReadOptions options;
  options.addresses = options.usable = false;
  return options;
}

/// Operations may take half of the memory that is there.
std::uint64_t prepared_bytes_max(Options::Operations operations) {
  if (operations == Options::Operations::streamed) return 0;
  if (operations == Options::Operations::prepared) return std::uint64_t{1} << 46;
  return free_memory_bytes() / 2;
}

PreparedTrace prepare(Source& source, const Options& options, cmt::output::ProgressLine& line) {
  const TraceOptions how{.threads = options.threads,
                         .strict = options.strict,
                         .paced = options.pace > 0,
                         .prepared_bytes_max = prepared_bytes_max(options.operations)};
  const auto open = [&source] { return cmt::command::open_trace(source.open(), source.name(), read_options()); };
  return PreparedTrace(open, how, [&line](const cmt::Reader& now) {
    const std::string done = now.bytes_total() == 0 ? cmt::output::bytes_text(now.bytes_read())
                                                    : std::to_string(100 * now.bytes_read() / now.bytes_total()) + " %";
    line.show("reading, " + done);
  });
}

touch touch_of(const std::string& name) {
  if (name == "none") return touch_none;
  if (name == "first") return touch_first;
  return name == "all" ? touch_all : touch_pages;
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

void say_death(const Allocator& allocator, const Death& death, std::uint64_t events, unsigned timeout_seconds) {
  say(allocator.name + ": died at event " + cmt::output::with_commas(death.event) + " of " +
      cmt::output::with_commas(events) + ": " + death.text(timeout_seconds));
}

void say_result(const Result& result, const Report& report) {
  const TraceFacts& facts = report.trace.facts();
  if (result.death) say_death(result.allocator, *result.death, facts.events, report.timeout_seconds);
  const std::uint64_t refused = result.timed.empty() ? 0 : result.timed.back().refused_calls;
  if (refused != 0) say(result.allocator.name + ": refused " + cmt::output::with_commas(refused) + " calls");
  for (const std::string& name : replaced_names(result.allocator)) {
    if (uses(facts, name)) say(result.allocator.name + ": has no " + name + "; made of what it has");
  }
}

/// Writes to standard output as it is, so that a full disk is noticed.
void put(const std::string& text, std::FILE* file) {
  if (std::fwrite(text.data(), 1, text.size(), file) != text.size() || std::fflush(file) != 0)
    throw std::system_error(errno, std::generic_category(), "output");
}

/// False where the allocator died.
bool put_new_trace(const Stage& stage, const Allocator& allocator, const std::string& path) {
  const SharedMemory pointers("pointers", stage.trace.pointers() * sizeof(void*));
  if (const auto death = run_keeping_pointers(stage, allocator, pointers)) {
    say(allocator.name + ": died in the run for the new trace: " + death->text(stage.timeout_seconds));
    return false;
  }
  cmt::Reader reader = stage.trace.open();
  if (path.empty())
    write_new_trace(reader, pointers, STDOUT_FILENO, cmt::Format::text);
  else
    write_new_trace(reader, pointers, path);
  return true;
}

bool put_new_traces(const Stage& stage, const std::vector<Result>& results, const Options& options) {
  bool good = true;
  for (const Result& result : results) {
    if (result.death) continue;
    good = put_new_trace(stage, result.allocator, output_path(options.output, result.allocator.name)) && good;
  }
  return good;
}

/// 1 where a promise was broken.
int verify_all(const Stage& stage, const std::vector<Allocator>& allocators, const Options& options,
               cmt::output::ProgressLine& line) {
  const std::uint64_t events = stage.trace.facts().events;
  std::vector<Verified> all;
  bool good = true;
  try {
    for (const Allocator& allocator : allocators) {
      line.show(allocator.name + ", verifying");
      all.push_back(run_verification(stage, allocator));
      line.clear();
      if (!options.json) put(verification_text({all.back()}, events), stdout);
      if (all.back().death) say_death(allocator, *all.back().death, events, options.timeout_seconds);
      good = good && all.back().good();
    }
  } catch (const Interrupted&) {
    say("interrupted; this is what is known so far");
    good = false;
  }
  if (options.json) put(verification_json(all, options.file, events, options.timeout_seconds), stdout);
  return good ? 0 : 1;
}

std::string text_of(const Report& report, const Options& options) {
  if (options.json) return json_text(report);
  return options.csv ? csv_text(report) : table_text(report) + details_text(report);
}

int run(const Options& options) {
  AllocatorFinder finder(find_worker(), options.prefix);
  const std::vector<Allocator> allocators = find_all(finder, options);
  cmt::output::ProgressLine line(STDERR_FILENO);
  Source source(options.file);
  const PreparedTrace trace = prepare(source, options, line);
  line.clear();
  say_what_is_left_out(source.name(), trace.facts());
  if (options.pace > 0 && trace.facts().recorded_ns == cmt::unknown)
    throw cmt::FormatError(source.name(), "no times were recorded, so no pace can be kept");

  const cmt::command::Interrupts interrupts;
  const Stage stage{.worker = find_worker(),
                    .trace = trace,
                    .interrupts = interrupts,
                    .timeout_seconds = options.timeout_seconds,
                    .pace = options.pace,
                    .touched = touch_of(options.touch),
                    .cpus = options.cpus};
  if (options.verify) return verify_all(stage, {allocators.begin(), allocators.end() - 1}, options, line);
  if (more_threads_than_cpus(stage))
    say(source.name() + ": up to " + std::to_string(trace.lanes()) +
        " threads at once share fewer CPUs: times of theirs mean little");
  Runs runs = run_all(stage, allocators, {.count = options.runs, .seed = options.seed},
                      [&line](const std::string& text) { line.show(text); });
  line.clear();
  Result baseline = std::move(runs.results.back());
  runs.results.pop_back();
  const Report report{.file = source.name(),
                      .format = std::string(name(trace.format())),
                      .rounds = options.runs,
                      .trace = trace,
                      .results = std::move(runs.results),
                      .baseline = std::move(baseline),
                      .interrupted = runs.interrupted,
                      .timeout_seconds = options.timeout_seconds,
                      .pace = options.pace,
                      .touch = options.touch,
                      .counters_missing = runs.counters_missing};
  put(text_of(report, options), options.new_trace && options.output.empty() ? stderr : stdout);

  bool good = !report.interrupted && !report.baseline.death;
  if (report.interrupted) say("interrupted; this is what is known so far");
  for (const Result& result : report.results) {
    say_result(result, report);
    good = good && !result.death;
  }
  if (options.new_trace && !report.interrupted) good = put_new_traces(stage, report.results, options) && good;
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
