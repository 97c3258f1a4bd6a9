// Checks each option before the command starts, and turns it into the tracer's variable.
#include "cmttrace/options.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "cmttrace/flight.h"
#include "preload/protocol.h"
#include "preload/settings_list.h"
#include "preload/text.h"
#include "toolkit/launch/trace_paths.h"
#include "toolkit/output/numbers.h"

namespace cmt::trace_launcher {
namespace {

using command::CommandLine;
using command::UsageError;

/// Call stacks and the times of calls are recorded without being asked for, unless --calls or the tracer's variable
/// says otherwise.
void add_defaults(const CommandLine& line, Options& options) {
  // A clock that rises each ms would cost more than the few events of samples, which read the clock themselves.
  const std::pair<const char*, const char*> by_default[] = {
#ifdef __x86_64__
      {"CMTTRACE_STACKS", "1"},
#endif
      {"CMTTRACE_TIME", line.has("sample-bytes") ? "1" : "1ms"},
  };
  for (const auto& variable : by_default) {
    const bool is_given = std::any_of(options.environment.begin(), options.environment.end(),
                                      [&](const auto& one) { return one.first == variable.first; });
    if (!is_given && !line.has("calls") && std::getenv(variable.first) == nullptr)
      options.environment.emplace_back(variable);
  }
}

bool records_stacks(const Options& options) {
  for (const auto& [variable, value] : options.environment) {
    if (variable == "CMTTRACE_STACKS") return value != "0";
  }
  const char* const inherited = std::getenv("CMTTRACE_STACKS");
  return inherited != nullptr && *inherited != 0 && std::string_view(inherited) != "0";
}

/// An option that is passed on in a variable of the tracer (libcmttrace(1)).
struct PassedOn {
  std::string option;
  const char* variable;
  const char* value;                 ///< nullptr: the option's
  std::set<std::string> units = {};  ///< that the option's number may have; none: it takes any text
};

const std::set<std::string> duration{"s"}, step{"step"}, frames{"frames"}, touched{"touched"}, kept{"kept"},
    kept_at{"kept-at"}, interpreters{"interpreters"}, positive{"positive"}, pools{"pools"}, interval{"interval"},
    size_limit{"size limit"}, count_limit{"count limit"}, time_limit{"time limit"};

/// Returns what cmttrace passes on for an option, and the values that the option accepts, by the form of its setting.
PassedOn passed_on_as(SettingForm form, const char* option, const char* variable) {
  switch (form) {
    case form_on:
      return {option, variable, "1"};
    case form_paused:
      return {option, variable, "paused"};
    case form_step:
      return {option, variable, nullptr, step};
    case form_frames:
      return {option, variable, nullptr, frames};
    case form_pool:
      return {option, variable, nullptr, pools};
    case form_interpreters:
      return {option, variable, nullptr, interpreters};
    case form_duration:
      return {option, variable, nullptr, duration};
    case form_interval:
      return {option, variable, nullptr, interval};
    case form_touched:
      return {option, variable, nullptr, touched};
    case form_keep:
      return {option, variable, nullptr, kept};
    case form_mark:
      return {option, variable, nullptr, kept_at};
    case form_files:
      return {option, variable, nullptr, positive};
    case form_size_limit:
      return {option, variable, nullptr, size_limit};
    case form_count_limit:
      return {option, variable, nullptr, count_limit};
    case form_time_limit:
      return {option, variable, nullptr, time_limit};
    default:
      return {option, variable, nullptr};
  }
}

/// All settings that have an option, but for --output, which this launcher reads itself.
const std::vector<PassedOn> passed_on = [] {
  std::vector<PassedOn> all;
#define CMT_SETTING(name, variable, option, form, ...) \
  if (*(option) != 0 && setting_##name != setting_out) all.push_back(passed_on_as(form_##form, option, variable));
  CMT_SETTINGS(CMT_SETTING)
#undef CMT_SETTING
  return all;
}();

/// Returns the bytes of a size in the form of the tracer's variables: "64K"; 0 if it is none.
std::uint64_t bytes_of(const std::string& text) { return command::parse_size(text).value_or(0); }

/// Whether --pool has a word.
bool has_pool(const CommandLine& line, std::string_view pool) {
  std::istringstream words(line.value("pool", ""));
  for (std::string word; std::getline(words, word, ',');) {
    if (word == pool) return true;
  }
  return false;
}

std::string pools_for_tracer(const CommandLine& line) {
  const std::set<std::string> known{"python", "heaptrack", "own"};
  const std::string value = line.value("pool", "");
  std::istringstream words(value);
  bool are_known = !value.empty() && value.back() != ',';
  for (std::string word; std::getline(words, word, ',');) are_known = are_known && known.contains(word);
  if (!are_known) command::refuse_value("pool", "python, heaptrack or own, or several with commas between them", value);
  return value;
}

/// Checks an option's value and returns the variable's. The tracer checks its variables too, but only when the command
/// runs already.
std::string value_for_tracer(const PassedOn& passed, const CommandLine& line) {
  if (passed.value != nullptr) return passed.value;
  if (passed.units == kept) return flight_limits_for_tracer(line);
  if (passed.units == pools) return pools_for_tracer(line);
  if (passed.units == kept_at) return memory_mark_for_tracer(line);
  if (passed.units == interpreters) return line.word(passed.option, {"auto", "none"});
  if (passed.units == positive) return std::to_string(line.number(passed.option, 1, 1, UINT32_MAX));
  const std::string value = line.value(passed.option, "");
  if (passed.units == touched) {
    if (value.empty() || value == "auto" || value == "off") return value.empty() ? "auto" : value;
    if (bytes_of(value) < block_page_bytes) command::refuse_value("touched", "a size from 4K on, auto or off", value);
    return value;
  }
  if (passed.units == interval) {
    if (bytes_of(value) < sample_bytes_min || bytes_of(value) > sample_bytes_max)
      command::refuse_value(passed.option.c_str(), "a size such as 512K, up to 1G", value);
    return value;
  }
  if (passed.units == frames) {
    if (value.empty()) return "";  // as if the variable were not set
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number == 0 || number > setting_frames_max)
      command::refuse_value("stacks", "a number of frames from 1 to " + std::to_string(setting_frames_max), value);
    return value;
  }
  if (passed.units == step) {
    if (value.empty()) return "1";
    const auto ns = line.parsed(passed.option, "", "a step such as 100us", [](const std::string& text) {
      const auto parsed = command::parse_duration(text);
      return parsed && *parsed >= time_step_ns_min ? parsed : std::nullopt;
    });
    return std::to_string(ns) + "ns";
  }
  if (passed.units == duration || passed.units == time_limit) {
    const auto ns = line.parsed(passed.option, "", "a time such as 10ms, 1.5s or 2h", command::parse_duration);
    if (ns == 0 && passed.units == time_limit) command::refuse_value(passed.option, "a time above 0", value);
    return std::to_string(ns) + "ns";
  }
  for (const auto& [form, units, wanted] : {std::tuple(&size_limit, units_of_size, "a size above 0, such as 100M"),
                                            std::tuple(&count_limit, units_of_count, "a number above 0")}) {
    std::uint64_t limit = 0;
    if (passed.units == *form && (!read_quantity(value.c_str(), units, &limit) || limit == 0))
      command::refuse_value(passed.option, wanted, value);
  }
  if (value.empty()) throw UsageError("--" + passed.option + ": a value is missing");
  return value;
}

bool takes_nothing_too(const PassedOn& passed) {
  return passed.units == step || passed.units == frames || passed.units == touched;
}

/// Refuses a volume that is too small for the rings. The tracer would only report an error.
void check_rings(const CommandLine& line) {
  const std::string folder = std::filesystem::path(line.value("rings", "")).parent_path();
  struct statvfs volume {};
  if (!line.has("rings") || statvfs(folder.empty() ? "." : folder.c_str(), &volume) != 0) return;
  const std::uint64_t room = volume.f_bavail * volume.f_frsize;
  if (room < rings_volume_min)
    throw std::runtime_error("--rings: the volume of " + line.value("rings", "") + " has room for " +
                             output::bytes_text(room) + ", and the file needs " + output::bytes_text(rings_volume_min));
}

/// Refuses options that a sample of the blocks cannot have.
void parse_sampling(const CommandLine& line, const Options& options) {
  line.refuse_together("sample-bytes", {"pool", "touched", "keep", "recover"});
  std::istringstream paths(options.has_trace ? options.output : "");
  for (std::string path; std::getline(paths, path, ',');) {
    if (!path.ends_with(".cmt"))
      throw UsageError("--sample-bytes: a sampled trace has no text form: " + path + " has to end in .cmt");
  }
}

void parse_profiles(const CommandLine& line, Options& options) {
  options.profiles = line.value("pprof", "");
  for (const char* const needs : {"pprof-every", "pprof-files"}) {
    if (line.has(needs) && !line.has("pprof")) throw UsageError(std::string("--") + needs + " goes with --pprof");
  }
  options.has_trace = options.profiles.empty() || options.output != CMT_NO_TRACE;
  for (const char* const needs : {"keep", "max-bytes", "rings"}) {
    if (line.has(needs) && !options.has_trace)
      throw UsageError(std::string("--") + needs + " needs a trace, and --output=" CMT_NO_TRACE " writes none");
  }
}

constexpr std::uint64_t pid_max = 1 << 22;

/// Refuses options that a process that runs already cannot get any more.
void parse_attach(const CommandLine& line, Options& options) {
  if (!options.command.empty()) throw UsageError("--attach records a process that runs, and no command");
  line.refuse_together("attach", {"detach", "recover", "rings"});
  for (const char* const pool : {"heaptrack", "own"}) {
    if (has_pool(line, pool))
      throw UsageError(std::string("--pool=") + pool +
                       " cannot go with --attach: the program has found no functions for its pools when it started");
  }
  options.attach = static_cast<int>(line.number("attach", 0, 1, pid_max));
  options.follow = line.word("follow", {"auto", "yes", "no"}) == "yes";
  options.force = line.has("force");
  if (!line.has("duration")) return;
  options.duration =
      std::chrono::nanoseconds(line.parsed("duration", "", "a time such as 10s or 1.5min", command::parse_duration));
}

void parse_detach(const CommandLine& line, Options& options) {
  if (!options.command.empty()) throw UsageError("--detach runs no command");
  for (const command::Option& other : known_options()) {
    if (other.name != "detach") line.refuse_together("detach", {other.name.c_str()});
  }
  options.detach = static_cast<int>(line.number("detach", 0, 1, pid_max));
}

/// Refuses a name of `option`, or its default, of which no launcher would learn.
void refuse_controls(const std::string& option, const std::string& templates, bool is_given) {
  if (!launch::has_controls(launch::absolute_templates(templates))) return;
  if (launch::has_controls(templates))
    throw UsageError("--" + option + ": a name, or its folder's, has control characters");
  throw UsageError((is_given ? "--" + option + ": " : "") + "the current folder's name has control characters; " +
                   (is_given ? "give an absolute path" : "give -o /FOLDER/NAME, in another folder"));
}

}  // namespace

std::vector<command::Option> known_options() {
  using Takes = command::Option::Takes;
  std::vector<command::Option> options{{"follow", Takes::value},
                                       {"output", Takes::value, 'o'},
                                       {"recover", Takes::value},
                                       {"attach", Takes::value},
                                       {"detach", Takes::value},
                                       {"duration", Takes::value},
                                       {"force"},
                                       {"calls"},
                                       {"verbose", Takes::nothing, 'v'}};
  for (const PassedOn& passed : passed_on)
    options.push_back({passed.option, passed.value != nullptr     ? Takes::nothing
                                      : takes_nothing_too(passed) ? Takes::value_or_nothing
                                                                  : Takes::value});
  return options;
}

/// Refuses a list in which a path has no ending. A name with a comma, such as "a,b.cmt", would become two files.
void check_outputs(const std::string& output, bool is_given) {
  if (output.empty()) throw UsageError("--output: a name is missing");
  refuse_controls("output", output, is_given);
  const auto commas = std::count(output.begin(), output.end(), ',');
  if (commas >= outputs_max) throw UsageError("--output: " + std::to_string(outputs_max) + " paths at most");
  std::istringstream paths(commas != 0 ? output : "");
  for (std::string path; std::getline(paths, path, ',');) {
    const std::string ending = std::filesystem::path(path).extension();
    if (ending.size() < 2 || std::isdigit(static_cast<unsigned char>(ending[1])) != 0)
      throw UsageError("--output: a comma separates paths, and '" + path + "' has no ending such as .trace");
  }
}

Options parse_options(const CommandLine& line) {
  Options options;
  options.output = line.value("output", options.output);
  check_outputs(options.output, line.has("output"));
  refuse_controls("pprof", line.value("pprof", ""), true);
  const std::string follow = line.word("follow", {"auto", "yes", "no"});
  options.follow = follow != "no";
  options.verbose = line.has("verbose");
  for (const PassedOn& passed : passed_on) {
    if (line.has(passed.option)) options.environment.emplace_back(passed.variable, value_for_tracer(passed, line));
  }
#if !defined __x86_64__
  for (const char* const option : {"stacks", "stacks-of-frees"}) {
    if (line.has(option))
      throw std::runtime_error(std::string("--") + option + ": call stacks are recorded on x86-64 only");
  }
#endif
  if (has_pool(line, "python") && line.has("frames") && line.word("frames", {"auto", "none"}) == "none")
    throw UsageError("--pool=python needs the frames of Python, and --frames=none leaves them out");
  parse_profiles(line, options);
  check_rings(line);
  if (line.has("sample-bytes")) parse_sampling(line, options);
  if (line.has("stacks") || line.has("stacks-of-frees") || has_pool(line, "python") || line.has("pprof"))
    options.environment.emplace_back("CMTTRACE_STACKS", "1");
  add_defaults(line, options);
  options.has_stacks = records_stacks(options);
  options.keeps = line.has("keep");
  options.is_heaptrack = has_pool(line, "heaptrack");
  options.leaves_out_short =
      follow == "auto" && !options.keeps && options.has_trace && options.output.find(',') == std::string::npos;
  options.command = line.files();
  if (line.has("detach")) {
    parse_detach(line, options);
    return options;
  }
  if (line.has("attach")) {
    parse_attach(line, options);
    return options;
  }
  for (const char* const other : {"duration", "force"}) {
    if (line.has(other)) throw UsageError(std::string("--") + other + " goes with --attach");
  }
  if (line.has("recover")) {
    if (!options.command.empty()) throw UsageError("--recover runs no command");
    options.recover = line.value("recover", "");
    options.output = line.value("output", "");
    return options;
  }
  if (options.command.empty()) throw UsageError("a command to record is missing");
  return options;
}

}  // namespace cmt::trace_launcher
