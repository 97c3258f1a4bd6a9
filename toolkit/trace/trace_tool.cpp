// Parses the options that lifetimes and overhead share, opens their trace, and reports its defects.

#include "toolkit/trace/trace_tool.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>

#include "libcmt/format/coding.h"
#include "toolkit/command/command_line.h"
#include "toolkit/command/jobs.h"
#include "toolkit/command/open_trace.h"
#include "toolkit/command/output_path.h"
#include "toolkit/output/numbers.h"

namespace cmt::trace {

std::vector<command::Option> known_options(std::vector<command::Option> own) {
  const auto value = command::Option::Takes::value;
  const std::vector<command::Option> shared{
      {"annotate"}, {"clock", value}, {"color", value},       {"csv"},
      {"json"},     {"leaks"},        {"plot", value},        {"strict"},
      {"summary"},  {"totals"},       {"output", value, 'o'}, command::jobs_option};
  own.insert(own.end(), shared.begin(), shared.end());
  return own;
}

namespace {

/// A second thread makes malloc reserve 64 MiB of addresses. If that is forbidden (ulimit -v), malloc tries again with
/// every call. Then one thread is faster.
bool has_room_for_threads() {
  rlimit limit{};
  return getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY;
}

/// Whether figures of a tool need events that origins do not have: those of pools, or that pages were given back.
bool needs_all_events(const Totals& totals, std::uint64_t touched_min) {
  const auto has = [&totals](Kind kind) { return totals.by_kind[static_cast<std::size_t>(kind)] != 0; };
  const bool has_pools =
      std::any_of(known_kinds.begin(), known_kinds.end(), [&has](Kind kind) { return is_of_pool(kind) && has(kind); });
  return has_pools || (touched_min != 0 && has(Kind::discard));
}

}  // namespace

Options parse_options(const std::string& tool, const command::CommandLine& line,
                      std::initializer_list<const char*> annotation_only) {
  for (const char* const form : {"json", "csv", "summary", "plot"}) line.refuse_together(form, annotation_only);
  line.refuse_together("json", {"csv"});
  Options options{.tool = tool};
  const bool prints = line.has("summary") || line.has("json") || line.has("csv");
  options.clock = line.parsed("clock", "events", "events, time or bytes", heap::Clock::parse);
  options.leaks = line.has("leaks");
  options.totals = line.has("totals");
  options.strict = line.has("strict");
  options.pool = line.value("pool", "");
  options.jobs = command::jobs_of(line);
  if (!has_room_for_threads()) options.jobs = 1;
  options.plot = line.checked("plot", picture::PictureFile::fault_of);
  options.summarises = prints || !options.plot.empty();
  options.prints = prints || options.plot.empty();
  if (line.has("json")) options.form = Options::Form::json;
  if (line.has("csv")) options.form = Options::Form::csv;
  return options;
}

bool prefers_summary(const Options& options, const command::CommandLine& line,
                     std::initializer_list<const char*> asks) {
  if (std::any_of(asks.begin(), asks.end(), [&](const char* option) { return line.has(option); })) return false;
  if (isatty(STDOUT_FILENO) == 0 || !command::can_be_read_again(options.path)) return false;
  const auto input = command::open_decompressed(options.path);
  if (!options.path.ends_with(".cmt") && !input->peek(format::magic.size()).starts_with(format::magic)) return false;
  command::complain(options.tool, "shows the summary; --annotate prints each event, as into a pipe or a file");
  return true;
}

Trace::Trace(const Options& options, bool addresses, bool stacks, command::Samples samples)
    : options_(options),
      progress_(std::make_unique<terminal::ProgressLine>(STDERR_FILENO)),
      pools_(options.pool),
      complaints_(options.strict, [this](const std::string& message) { say(message); }),
      reader_(open(addresses, stacks, samples)),
      reopen_([=, this] { return open(addresses, stacks, samples); }) {
  complaints_.set_place([this] { return place(); });
  if (header().find("origin").value_or("start") != "start") pools_.note_earlier_arenas();
  if (options.clock == heap::Clock::Unit::time && !header().has_times)
    throw FormatError(options.path, "times were not recorded (needed by --clock=time)");
}

Reader Trace::open(bool addresses, bool stacks, command::Samples samples) {
  return command::open_trace(options_.path,
                             {.strict = options_.strict,
                              .addresses = addresses,
                              .addresses_of_touched = true,
                              .stacks = stacks,
                              .on_defect =
                                  [this](const Defect& defect) {
                                    if (batches_ && batches_->is_filling()) return batches_->add(defect);
                                    complaints_.add(defect);
                                  }},
                             samples);
}

std::optional<LateStart> Trace::start_late(const SliceRange& range) {
  if (options_.strict || options_.path == "-" || pools_.has_chosen()) return std::nullopt;
  if (!totals() || needs_all_events(*totals(), header().touched_min())) return std::nullopt;
  return trace::start_late(reader_, range, reopen_);
}

std::string Trace::place() const {
  if (visited_ == nullptr) return reader_.place(current_);
  if (!visited_->line_numbers.empty()) return name() + ":" + std::to_string(visited_->line_numbers[current_]);
  return name() + ": event " + std::to_string(visited_->first_event + current_ + 1);
}

/// Reports the defects of the visited batch that were found before an event was handed out.
void Trace::report_defects(std::size_t before) {
  assert(visited_ != nullptr);
  const auto& defects = visited_->defects;
  for (; defects_reported_ < defects.size() && defects[defects_reported_].before <= before; ++defects_reported_) {
    complaints_.add(defects[defects_reported_].defect);
  }
}

std::string Trace::name() const { return command::input_name(options_.path); }

void Trace::begin_output() {
  if (!terminal::is_output_file()) progress_.reset();
}

bool Trace::begins_late() const { return trace::begins_late(header().find("slice").value_or("")); }

bool Trace::lacks_last_touches() const { return truncated() || may_end_early(header()); }

std::string Trace::part_slices() {
  if (!begins_late()) return {};
  knows_part_ = true;
  return std::string(*header().find("slice"));
}

std::string Trace::missing_end() const {
  return command::missing_end(options_.path, truncated(),
                              truncated() ? "breaks off before its end" : "the trace is empty");
}

void Trace::say_what_is_missing() const {
  if (progress_) progress_->clear();
  if (truncated() || is_empty_) say(name() + ": " + missing_end());
  if (const std::uint64_t lost = lost_events(); lost != 0)
    say(name() + (header().find("slice") ? ": the whole recording lacks " : ": lacks ") +
        output::counted(lost, "event") + " that the recorder has lost");
  if (!pools_.is_chosen_known()) {
    const std::string names = pools_.names();
    const std::string none =
        truncated() ? "the part before the break has no pools" : "no pools were recorded (cmttrace --pool)";
    throw FormatError(name(),
                      "no events of pool " + options_.pool + "; " + (names.empty() ? none : "the pools are " + names));
  }
  if (!options_.says_pools) return;
  if (begins_late() && !knows_part_)
    say(name() + ": a part of a recording: blocks that were live at its begin count as allocated");
  const std::string missing = begins_late() ? "; the slice has no blocks of pools from before its begin" : "";
  for (const std::string& line : pools_.lines()) say(name() + ": " + line + missing);
}

SummaryOutput::SummaryOutput(const Options& options) : options_(options) {
  if (options.plot.empty()) return;
  command::refuse_input_as_output(options.plot, {options.path});
  picture_.emplace(options.plot);
}

void SummaryOutput::write_picture(const picture::Picture& picture, const std::string& numbers) {
  picture_->write(picture, numbers);
  if (picture_->remark().empty()) return;
  command::complain(options_.tool, options_.plot + ": " + std::string(picture_->remark()));
}

}  // namespace cmt::trace
