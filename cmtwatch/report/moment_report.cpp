// Writes one moment as tables for people or as JSON.
#include "cmtwatch/report/moment_report.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "cmtwatch/recording/memory_kinds.h"
#include "cmtwatch/recording/recording.h"
#include "cmtwatch/report/report_output.h"
#include "libcmt/text/utf8.h"
#include "toolkit/output/fields.h"
#include "toolkit/output/json.h"
#include "toolkit/output/numbers.h"
#include "toolkit/output/table.h"

namespace cmt::watch {
namespace {

using output::Table;

/// In KiB with groups of three, or in bytes.
std::string kib_text(std::uint64_t bytes, const MomentOptions& options) {
  return options.bytes ? std::to_string(bytes) : output::with_commas((bytes + 1023) / 1024) + " KiB";
}

std::string kib_text(const std::optional<std::uint64_t>& bytes, const MomentOptions& options) {
  return bytes ? kib_text(*bytes, options) : "not readable";
}

std::string parts_text(const std::vector<std::vector<RecordedMapping>>& processes, const MomentOptions& options) {
  const MemoryBreakdown breakdown = break_down(processes);
  if (breakdown.sum.mappings == 0) return "no mappings are known\n";
  Table table({"resident", "proportional", "anonymous", "swapped", "mappings", "memory"}, {5});
  const auto add_row = [&](const MemoryPart& part) {
    table.add({kib_text(part.resident_bytes, options), kib_text(part.proportional_bytes, options),
               kib_text(part.anonymous_bytes, options), kib_text(part.swapped_bytes, options),
               output::with_commas(part.mappings), text::to_line(part.name)});
  };
  for (const MemoryPart& part : breakdown.parts) add_row(part);
  add_row(breakdown.sum);
  return table.text(options.width);
}

/// Returns the command of a process: on a terminal without the folder of its program, elsewhere cut to 80 columns.
std::string title_of(const RecordedProcess& process, const MomentOptions& options) {
  constexpr std::size_t width_max = 80;
  if (process.command.empty()) return "(" + text::to_line(process.name) + ")";
  const std::string command = text::to_line(process.command);
  if (options.width == 0) return output::shortened(command, width_max + 3, output::Telling::begin);
  const auto slash = command.rfind('/', command.find(' '));
  return command.substr(slash == command.npos ? 0 : slash + 1);
}

std::string processes_text(const Moment& moment, const MomentOptions& options) {
  constexpr std::size_t shown_max = 20;
  std::size_t shown = 0;
  Table table({"pid", "resident", "proportional", "size", "oom score", "command"}, {5});
  for (const RecordedProcess& process : moment.processes) {
    table.add({std::to_string(process.pid), kib_text(process.resident_bytes, options),
               kib_text(process.proportional_bytes, options),
               process.size_bytes ? kib_text(*process.size_bytes, options) : "not known",
               process.oom_score ? std::to_string(*process.oom_score) : "", title_of(process, options)});
    if (++shown == shown_max && !options.verbose) break;
  }
  const std::size_t left = moment.processes.size() - shown;
  return table.text(options.width, output::Telling::begin) +
         (left == 0 ? "" : "and " + output::with_commas(left) + " more (-v shows them)\n");
}

/// Figures that are not known are left out.
std::string machine_text(const RecordedMachine& machine, const MomentOptions& options) {
  std::string text;
  if (machine.available_bytes && machine.total_bytes)
    text =
        kib_text(*machine.available_bytes, options) + " of " + kib_text(*machine.total_bytes, options) + " available";
  if (machine.swap_total_bytes && machine.swap_free_bytes) {
    const std::uint64_t used =
        *machine.swap_total_bytes - std::min(*machine.swap_free_bytes, *machine.swap_total_bytes);
    text += (text.empty() ? "" : ", ") + kib_text(used, options) + " of " +
            kib_text(*machine.swap_total_bytes, options) + " swap used";
  }
  return text.empty() ? text : "the machine: " + text + "\n";
}

/// The largest groups, or all with -v.
std::string groups_text(const Moment& moment, const MomentOptions& options) {
  constexpr std::size_t shown_max = 3;
  std::string text;
  for (std::size_t i = 0; i < moment.groups.size() && (i < shown_max || options.verbose); ++i)
    text += group_text(moment.groups[i], moment.sum().metric(),
                       [&options](std::uint64_t bytes) { return kib_text(bytes, options); }) +
            "\n";
  return text;
}

std::string heading(const RecordedProcess& process) {
  std::string text = "\n" + std::to_string(process.pid) + " (" + text::to_line(process.name) + ")";
  if (!process.mappings_readable) return text + ": its mappings were not recorded\n";
  return text + (*process.mappings_readable ? "\n" : ": its mappings could not be read\n");
}

std::vector<std::vector<RecordedMapping>> all_mappings(const Moment& moment) {
  std::vector<std::vector<RecordedMapping>> all;
  for (const RecordedProcess& process : moment.processes) all.push_back(process.mappings);
  return all;
}

/// The parts at the last looks at processes; those of several processes added up by name. Empty if there are none.
std::string explanations_text(const std::vector<RecordedProcess>& processes, const MomentOptions& options) {
  std::map<std::string, std::int64_t> sums;
  std::size_t looks = 0;
  std::int64_t age_ns = 0;
  for (const RecordedProcess& process : processes) {
    if (!process.explanation) continue;
    ++looks;
    age_ns = std::max(age_ns, process.explanation->age_ns);
    for (const RecordedPart& part : process.explanation->parts) sums[part.name] += part.bytes;
  }
  if (looks == 0) return "";
  std::vector<std::pair<std::int64_t, std::string>> rows;
  for (const auto& [name, bytes] : sums) rows.emplace_back(bytes, name);
  std::sort(rows.rbegin(), rows.rend());
  const std::string of = processes.size() == 1 ? ""
                                               : " of " + output::with_commas(looks) + " of " +
                                                     output::counted(processes.size(), "process");
  const std::string when =
      age_ns == 0 ? "" : (looks == 1 ? ", " : ", up to ") + output::seconds_text(age_ns) + " before";
  Table table({"resident", "part" + of + when}, {1});
  for (const auto& [bytes, name] : rows)
    table.add(
        {(bytes < 0 ? "-" : "") + kib_text(static_cast<std::uint64_t>(std::abs(bytes)), options), text::to_line(name)});
  return "\n" + table.text(options.width);
}

/// Which mappings are those of an earlier moment; empty: none.
std::string kept_text(const std::vector<RecordedProcess>& processes) {
  std::size_t kept = 0;
  std::int64_t age_ns = 0;
  for (const RecordedProcess& process : processes) {
    kept += process.mappings_age_ns != 0;
    age_ns = std::max(age_ns, process.mappings_age_ns);
  }
  if (kept == 0) return "";
  return "mappings of " + output::with_commas(kept) + " of " + output::counted(processes.size(), "process") +
         " were read up to " + output::seconds_text(age_ns) + " before: no page faults since\n";
}

/// Returns the name of the metric, and the memory of all processes by it.
std::pair<std::string_view, std::optional<std::uint64_t>> sum_of(const Moment& moment, PeakMetric metric) {
  if (metric != PeakMetric::pss) return {metric == PeakMetric::rss ? "rss" : "statm", moment.sum_by(metric)};
  return {moment.sum().metric(), moment.sum().bytes()};
}

}  // namespace

std::string moment_text(const Moment& moment, const MomentOptions& options) {
  std::string text = "at " + output::seconds_text(moment.begin_ns) + " (" + wall_text(moment.wall_ns) + ")";
  const auto [metric, bytes] = sum_of(moment, options.metric);
  if (options.peak) text += ", peak " + kib_text(bytes, options) + " " + std::string(metric);
  text += "\n";
  if (moment.machine) text += machine_text(*moment.machine, options);
  text += groups_text(moment, options);
  text += kept_text(moment.processes);
  text += "\n";
  text += processes_text(moment, options) + "\n" + parts_text(all_mappings(moment), options) +
          explanations_text(moment.processes, options);
  if (!options.verbose) return text;
  for (const RecordedProcess& process : moment.processes) {
    text += heading(process);
    if (process.mappings_readable.value_or(false)) text += parts_text({process.mappings}, options);
    text += explanations_text({process}, options);
  }
  return text;
}

std::string moment_json(const Moment& moment, PeakMetric metric) {
  output::JsonWriter json;
  output::JsonFields field(json);
  json.begin_object();
  json.field("schema", "cmt.moment/1");
  field("tick", moment.tick, "the moment's number in the recording");
  field("begin_ns", moment.begin_ns, "since the recording began");
  field("end_ns", moment.end_ns, "the figures are of some time between begin_ns and end_ns");
  field("wall_ns", moment.wall_ns, "since 1970");
  const auto [name, bytes] = sum_of(moment, metric);
  field("metric", name, "what bytes are: pss, rss, or pss or rss; of peak --metric rss or statm");
  field("bytes", bytes, "of all processes below");
  field("system", moment.machine, "null: it was not recorded");
  json.begin_array("groups");
  for (const GroupReading& group : moment.groups) {
    json.begin_object();
    describe_named(field, group);
    json.end_object();
  }
  json.end_array();
  field("parts", break_down(all_mappings(moment)).parts, "by purpose, then the largest files");
  json.begin_array("processes");
  for (const RecordedProcess& process : moment.processes) {
    json.begin_object();
    describe(field, process);
    field("mappings_age_ns", process.mappings_age_ns,
          "not 0: so long before, the mappings were read; statm, page faults and threads have not changed since");
    field("explanation", process.explanation, "null: the process was not looked at (record --explain)");
    json.begin_array("mappings");  // by rising address
    for (const RecordedMapping& mapping : process.mappings) {
      json.begin_object();
      field("begin", output::hex(mapping.begin), "the first address");
      field("end", output::hex(mapping.end), "one past the last");
      field("permissions", mapping.permissions, "as in smaps");
      field("name", mapping.name.empty() ? std::nullopt : std::optional(mapping.name), "null: anonymous");
      field("zero_data_bytes", mapping.zero_data_bytes, "its first bytes that are .bss of the file before");
      describe(field, static_cast<const process::Mapping&>(mapping));
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.take();
}

}  // namespace cmt::watch
