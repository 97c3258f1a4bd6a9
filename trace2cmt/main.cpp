// trace2cmt: converts any trace to .cmt, text or a table, shows what it holds, or checks it.

#include <unistd.h>

#include <array>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "libcmt/trace/first_defects.h"
#include "toolkit/command/command_line.h"
#include "toolkit/command/complaints.h"
#include "toolkit/command/open_trace.h"
#include "toolkit/files/output_file.h"
#include "toolkit/output/numbers.h"
#include "toolkit/terminal/progress.h"
#include "trace2cmt/filters/filter.h"
#include "trace2cmt/input/inputs.h"
#include "trace2cmt/inspect/info.h"
#include "trace2cmt/inspect/verify.h"
#include "trace2cmt/options.h"
#include "trace2cmt/sinks/sink.h"
#include "trace2cmt/stacks/symbolise.h"

namespace {

using namespace cmt::trace2cmt;

void say(const std::string& line) { cmt::command::complain("trace2cmt", line); }

/// The words for one repair of a kind, and for several.
struct RepairPhrases {
  const char* one;
  const char* many;
};

/// By cmt::Repair.
constexpr std::array<RepairPhrases, cmt::repair_count> repair_phrases{{
    {"line not understood", "lines not understood"},
    {"free of no block dropped", "frees of no block dropped"},
    {"realloc of no block taken as an allocation", "reallocs of no block taken as allocations"},
    {"order race swapped", "order races swapped"},
    {"block handed out twice and ended first", "blocks handed out twice and ended first"},
    {"misfree", "misfrees"},
    {"event with a contradicting tag dropped", "events with contradicting tags dropped"},
    {"event of an unknown kind replaced", "events of unknown kinds replaced"},
    {"block that another lies on ended first", "blocks that others lie on ended first"},
    {"time before that of the event before raised", "times before those of the events before raised"},
    {"block given at another address than its own", "blocks given at other addresses than their own"},
}};

/// ": 2 frees of no block dropped, 1 order race swapped"; empty if the kinds of repairs are not known.
std::string repair_summary(const cmt::Repairs& repairs) {
  std::string text;
  const auto append = [&](std::uint64_t count, const RepairPhrases& phrases) {
    if (count == 0) return;
    text += text.empty() ? ": " : ", ";
    text += std::to_string(count) + " " + (count == 1 ? phrases.one : phrases.many);
  };
  for (std::size_t i = 0; i < repair_phrases.size(); ++i) append(repairs.by_kind[i], repair_phrases[i]);
  if (!text.empty()) append(repairs.other, {"of another kind", "of other kinds"});
  return text;
}

/// "2 records are no calls of the allocator: 1 aspace-sample, 1 mmap".
void say_left_out(const cmt::logs::LeftOut& left_out) {
  std::uint64_t all = 0;
  for (const auto& [kind, count] : left_out) all += count;
  if (all != 0)
    say(std::to_string(all) + (all == 1 ? " record is no call" : " records are no calls") +
        " of the allocator: " + cmt::logs::list_kinds(left_out));
}

void say_defects(const Inputs& inputs, const cmt::Totals& totals, const cmt::Repairs& repairs) {
  for (const std::string& path : inputs.truncated_files())
    say("warning: " + path + ": " +
        cmt::command::missing_end(path, true, "the trace breaks off; all that is whole was read"));
  for (const std::string& path : inputs.empty_files())
    say(path + ": " + cmt::command::missing_end(path, false, "the trace is empty"));
  if (repairs.total() == 0) return;
  say(cmt::output::counted(totals.events, "event") + ", " + cmt::output::counted(repairs.total(), "repair") +
      repair_summary(repairs));
}

std::vector<std::unique_ptr<Filter>> make_filters(const Options& options) {
  std::vector<std::unique_ptr<Filter>> filters;
  if (options.slice)
    filters.push_back(make_slice_filter(*options.slice, options.inputs.size() == 1 ? options.inputs[0] : ""));
  if (!options.threads.empty())
    filters.push_back(
        make_thread_filter(options.threads, options.slice ? "" : options.inputs.front()));  // all may be elsewhere
  if (options.anonymise) filters.push_back(make_anonymising_filter());
  if (options.time_step_ns != 0) filters.push_back(make_rounding_filter(options.time_step_ns));
  return filters;
}

/// If a .cmt is damaged before a slice begins, a keyframe between the damage and the slice has the live blocks. Skips
/// to that keyframe. Returns false if there is none.
bool skip_damage(Inputs& inputs, FilterChain& filters, const Options& options, const cmt::FormatError& damage) {
  const auto is_by_events = [](const auto& bound) {
    return bound && bound->unit == cmt::trace::SliceBound::Unit::events;
  };
  if (options.strict || !options.slice || !is_by_events(options.slice->from)) return false;
  const auto keyframe = inputs.skip_damage(options.slice->from->value);
  if (!keyframe) return false;
  const std::vector<cmt::LiveBlock> live = inputs.list_live_before(*keyframe);
  filters.skip_damage(keyframe->first_event, live);
  say(std::string(damage.what()) + "; continues after event " + std::to_string(keyframe->first_event) + ", where " +
      cmt::output::counted(live.size(), "block") + " lived: their calls and stacks are not known");
  return true;
}

/// If a .cmt has the origins of the live blocks before a slice, moves the input there. A strict reader reads it all.
std::optional<cmt::trace::LateStart> start_late(Inputs& inputs, const Options& options) {
  if (options.strict || !options.slice) return std::nullopt;
  return inputs.start_late(*options.slice);
}

/// Reads all events, and passes them to the filters.
void read_events(Inputs& inputs, FilterChain& filters, const Options& options) {
  for (;;) {
    try {
      return inputs.read([&](const cmt::Event& event) { return filters.filter(event), !filters.done(); });
    } catch (const cmt::FormatError& damage) {
      if (!skip_damage(inputs, filters, options, damage)) throw;
    }
  }
}

void convert_events(const Options& options) {
  if (options.output == "-" && !options.form->binary_name.empty() && isatty(STDOUT_FILENO)) {
    throw std::runtime_error("will not write " + std::string(options.form->binary_name) +
                             " to a terminal; redirect it, or use -o or -s");
  }
  cmt::terminal::ProgressLine progress(STDERR_FILENO);
  const auto tell = [&progress](const std::string& line) {
    progress.clear();
    say(line);
  };
  cmt::command::Complaints complaints(options.strict, tell);
  cmt::ReadOptions read_options;
  read_options.strict = options.strict;
  read_options.stacks = options.form->has_stacks;
  read_options.threads = options.jobs;
  read_options.on_defect = [&](const cmt::Defect& defect) { complaints.add(defect); };
  cmt::logs::LeftOut left_out;
  From from = options.from;
  from.left_out = &left_out;
  Inputs inputs(options.inputs, from, read_options, options.form->has_samples);
  cmt::files::OutputFile output(options.output);
  if (options.output != "-" || cmt::terminal::is_output_file()) {
    inputs.report_to([&progress](const std::string& path, std::uint64_t bytes, std::uint64_t all) {
      if (progress.due(all)) progress.show(cmt::command::input_name(path), bytes, all);
    });
  }
  const std::optional<cmt::trace::LateStart> start = start_late(inputs, options);

  std::unique_ptr<Sink> sink;
  cmt::Repairs refused;
  FilterChain filters(make_filters(options), [&](const cmt::Event& event) {
    if (sink->add(event)) return;
    refused.add(cmt::Repair::contradiction);
    complaints.add(inputs.place(), "its tag contradicts the events before: dropped");
  });
  cmt::Header header = inputs.header();
  const bool begins_with_stacks = header.has_stacks;
  filters.change_header(header);
  sink = options.form->make_sink({output.fd(), std::move(header), options.level, options.jobs, tell, options.output,
                                  filters.empty() ? inputs.booked_source() : nullptr});
  const cmt::StackTable& stacks = filters.change_stacks(inputs.stacks());
  sink->use_stacks(stacks);
  if (start) filters.start_late(start->event, start->origins);
  if (sink->takes_booked()) {
    inputs.read_batches([&](std::span<const cmt::Event> events) { sink->add_booked(events); });
  } else {
    read_events(inputs, filters, options);
  }
  if (options.symbolise && !begins_with_stacks && stacks.node_count() == 1)
    throw std::runtime_error(options.inputs.front() + ": call stacks were not recorded (needed by --symbolise)");
  filters.finish();
  progress.clear();
  cmt::StackTable named;
  if (options.symbolise)
    sink->use_stacks(named = symbolised(stacks, inputs.header(), options.debug_directories, options.root, say));
  const cmt::Repairs repairs = inputs.repairs() += refused;
  if (options.threads.empty()) sink->use_stretches(inputs.stretches());  // they are of all threads together
  sink->use_samples_lost(inputs.samples_lost());
  sink->finish(repairs, inputs.truncated());
  output.commit();
  say_left_out(left_out);
  say_defects(inputs, sink->totals(), repairs);
}

/// The number of events that can be read from here on.
std::uint64_t count_rest(cmt::Reader& reader) {
  std::uint64_t events = 0;
  try {
    for (auto batch = reader.read(); !batch.empty(); batch = reader.read()) events += batch.size();
  } catch (const cmt::FormatError&) {
  }
  return events;
}

/// How to extract the events after the damage of a .cmt, which has `before` events before it: ", the 7 events after …".
std::string hint_after_damage(cmt::Reader& reader, std::uint64_t before) {
  std::string hint;
  try {
    for (const cmt::BlockStart& block : reader.blocks()) {
      if (!block.keyframe || block.first_event <= before) continue;
      reader.seek(block.first_event);
      const std::uint64_t events = count_rest(reader);
      if (events == 0) continue;
      const std::uint64_t end = block.first_event + events;
      const bool is_last = reader.totals() && end == reader.totals()->events;
      return ", the " + cmt::output::counted(events, "event") +
             " after it by --slice=" + std::to_string(block.first_event) + ":" + (is_last ? "" : std::to_string(end));
    }
  } catch (const cmt::FormatError&) {
  }
  return {};
}

/// How to extract the whole events of a damaged .cmt; empty if it has none. The output that was begun is
/// not kept, because it would look whole.
std::string hint_at_whole_events(const Options& options) {
  if (options.slice || options.inputs.size() != 1 || !cmt::command::can_be_read_again(options.inputs[0])) return {};
  try {
    cmt::Reader reader =
        open_log(options.inputs[0], options.from, {.stacks = options.form->has_stacks},
                 options.form->has_samples ? cmt::command::Samples::accepted : cmt::command::Samples::refused);
    if (reader.header().format != cmt::Format::cmt) return {};
    const std::uint64_t events = count_rest(reader);
    if (events == 0) return {};
    return options.inputs[0] + ": the " + cmt::output::counted(events, "event") +
           " before the damage can be taken out by --slice=:" + std::to_string(events) +
           hint_after_damage(reader, events);
  } catch (const cmt::FormatError&) {
    return {};
  }
}

/// Converts. Errors name the output.
void convert(const Options& options) {
  try {
    convert_events(options);
  } catch (const cmt::FormatError& error) {
    const std::string hint = hint_at_whole_events(options);
    if (hint.empty()) throw;
    say(error.what());
    throw std::runtime_error(hint);
  } catch (const std::system_error& error) {
    if (options.output == "-") throw;
    cmt::files::throw_with_name(error, options.output);
  }
}

/// Converts a log of several processes to a file for each, if the output has a name and the log can be read again.
void convert_processes(Options options) {
  try {
    return convert(options);
  } catch (const SeveralProcesses&) {
    if (options.output == "-" || options.inputs.size() > 1 || !cmt::command::can_be_read_again(options.inputs[0]))
      throw;
  }
  const std::filesystem::path output = options.output;
  const auto processes =
      cmt::logs::processes_in(cmt::command::open_decompressed(options.inputs[0]), options.from.format);
  for (const std::uint64_t pid : processes) {
    options.from.pid = pid;
    options.output = output.parent_path() / (output.stem().string() + "." + std::to_string(pid));
    options.output += output.extension();
    say(options.output + ": process " + std::to_string(pid));
    convert(options);
  }
}

/// Prints the first fault of each kind, and how many there are of it.
int verify_and_print(const TraceFile& file, unsigned jobs) {
  struct Kind {
    std::string first_place;
    std::uint64_t faults = 0;
  };
  std::vector<Kind> kinds;
  cmt::FirstDefects first(0);
  const auto report = [&](const std::string& place, const std::string& what, std::uint64_t count) {
    if (const auto kind = first.counted_by(what)) {
      kinds[*kind].faults += count;
      return;
    }
    kinds.push_back({place, count});
    cmt::command::print(place + ": " + what + "\n");
  };
  const Verdict verdict = verify(file, jobs, report);
  for (const Kind& kind : kinds) {
    if (kind.faults == 1) continue;
    cmt::command::print(file.name() + ": " + cmt::output::with_commas(kind.faults - 1) + " more of the kind of " +
                        kind.first_place + "\n");
  }
  if (verdict.faults == 0) cmt::command::print(file.name() + ": ok, " + verdict.checked + "\n");
  return verdict.faults == 0 ? 0 : 1;
}

int run(const Options& options) {
  switch (options.task) {
    case Options::Task::convert:
      convert_processes(options);
      return 0;
    case Options::Task::info: {
      const Info info = info_of({options.inputs.front(), options.from}, options.jobs);
      cmt::command::print(options.json ? to_json(info) : to_text(info));
      return 0;
    }
    case Options::Task::verify:
      return verify_and_print({options.inputs.front(), options.from}, options.jobs);
  }
  return 1;
}

}  // namespace

int trace2cmt_main(int argc, char** argv) {
  return cmt::command::run(argc, argv,
                           {"trace2cmt", CMT_VERSION, help_text, known_options,
                            [](const cmt::command::CommandLine& line) { return run(options_of(line)); }});
}
