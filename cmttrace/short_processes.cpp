// Recognises short processes by their totals and by how long they lived.
#include "cmttrace/short_processes.h"

#include <algorithm>
#include <cassert>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "toolkit/files/output_file.h"
#include "toolkit/output/fields.h"
#include "toolkit/process/proc_file.h"

namespace cmt::trace_launcher {

using launch::RecordedFile;

namespace {

bool is_short(const RecordedFile& file) {
  return file.is_finished && file.totals && !file.is_sampled && file.lived_ns != 0 && file.lived_ns < short_ns &&
         file.totals->allocations < short_allocations && file.totals->peak_live_bytes < short_peak_bytes;
}

/// A line of the list.
struct ListedProcess {
  const RecordedFile& file;
  double begin_s = 0;  ///< since the first process began
  bool is_kept = true;
};

template <class Visitor>
void describe(Visitor& field, const ListedProcess& process) {
  const RecordedFile& file = process.file;
  const auto total = [&](std::uint64_t RunningTotals::*figure) {
    return file.totals && !file.is_sampled ? std::optional<std::uint64_t>((*file.totals).*figure) : std::nullopt;
  };
  field("process", file.process, "its id; a process that executes several programs has a line for each");
  field("program", file.program, "the file name of the program");
  field("begin_s", process.begin_s, "since the first of them began");
  field("seconds", static_cast<double>(file.lived_ns) / 1e9, "for which it was recorded");
  field("events", file.events, "its calls; of a sampled trace those of samples");
  field("allocations", total(&RunningTotals::allocations), "blocks made; empty: not known, or sampled");
  field("peak_live_bytes", total(&RunningTotals::peak_live_bytes), "empty: not known");
  field("end_live_bytes", total(&RunningTotals::end_live_bytes), "empty: not known");
  field("trace", process.is_kept ? file.path : std::string(), "empty: left out, since it was short");
  field("command", file.command, "");
}

/// The trace of the last program that a process became, or null.
const RecordedFile* last_trace_of(pid_t process, const launch::RecordedTraces& recorded) {
  const RecordedFile* last = nullptr;
  for (const RecordedFile& file : recorded.files) {
    if (file.process == process && (last == nullptr || file.begin_ns > last->begin_ns)) last = &file;
  }
  return last;
}

}  // namespace

void leave_out_short(launch::RecordedTraces& recorded, pid_t own) {
  const RecordedFile* last_of_own = last_trace_of(own, recorded);
  if (last_of_own == nullptr && std::all_of(recorded.files.begin(), recorded.files.end(), is_short))
    last_of_own = recorded.files.data();
  launch::leave_out(recorded, [&](const RecordedFile& file) {
    std::error_code error;
    return &file != last_of_own && is_short(file) && std::filesystem::remove(file.path, error);
  });
}

std::string list_path(const launch::RecordedTraces& recorded, pid_t own) {
  assert(!recorded.files.empty());
  const RecordedFile* const trace = last_trace_of(own, recorded);
  return std::filesystem::path((trace ? *trace : recorded.files[0]).path).replace_extension(".processes.csv");
}

void write_list(const std::string& path, const launch::RecordedTraces& recorded) {
  std::vector<std::pair<const RecordedFile*, bool>> all;
  for (const RecordedFile& file : recorded.files) all.emplace_back(&file, true);
  for (const RecordedFile& file : recorded.left_out) all.emplace_back(&file, false);
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first->begin_ns < b.first->begin_ns; });
  std::string text;
  for (const auto& [file, is_kept] : all) {
    const ListedProcess process{*file, static_cast<double>(file->begin_ns - all.front().first->begin_ns) / 1e9,
                                is_kept};
    if (text.empty()) text = output::csv_titles(process);
    text += output::csv_row(process);
  }
  files::OutputFile list(path);
  process::write_all(list.fd(), text, path);
  list.commit();
}

}  // namespace cmt::trace_launcher
