// The list of foreign formats, and the search for the one that a log is in.

#include "toolkit/logs/log_format.h"

#include <algorithm>
#include <array>

#include "libcmt/text/format.h"
#include "libcmt/text/parser.h"

namespace cmt::logs {

// The formats that other files of this folder define.
extern const LogFormat android_format, dtrace_format, heaptrack_format, kdump_format, logalloc_format, ltrace_format,
    mtrace_format, rep_format, valgrind_format;

namespace {

/// Whether a line can only be of our own text form: it has tags, or is of the header.
bool is_own_text(std::string_view line) {
  if (line.starts_with("#cmt ")) return true;
  if (line.find('<') == std::string_view::npos) return false;
  cmt::text::Parser parser;
  const cmt::text::Line& parsed = parser.parse(line);
  return parsed.sort == cmt::text::Line::Sort::event && (parsed.event.tag != 0 || parsed.event.old_tag != 0);
}

}  // namespace

std::span<const LogFormat> log_formats() {
  static const std::array formats{android_format, dtrace_format, heaptrack_format, kdump_format,   logalloc_format,
                                  ltrace_format,  mtrace_format, rep_format,       valgrind_format};
  return formats;
}

const LogFormat* find_log_format(std::string_view name) {
  const auto formats = log_formats();
  const auto found = std::find_if(formats.begin(), formats.end(), [&](const LogFormat& f) { return f.name == name; });
  return found == formats.end() ? nullptr : &*found;
}

const LogFormat* recognise_log_format(std::string_view start) {
  while (!start.empty()) {
    const std::size_t length = std::min(start.find('\n'), start.size());
    std::string_view line = start.substr(0, length);
    if (line.ends_with('\r')) line.remove_suffix(1);
    start.remove_prefix(std::min(length + 1, start.size()));
    if (is_own_text(line)) return nullptr;
    for (const LogFormat& format : log_formats()) {
      if (format.identifies(line)) return &format;
    }
  }
  return nullptr;
}

std::string list_kinds(const LeftOut& left_out) {
  constexpr std::size_t kinds_max = 5;
  std::vector<std::pair<std::string, std::uint64_t>> kinds(left_out.begin(), left_out.end());
  std::stable_sort(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  std::uint64_t others = 0;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const auto& [kind, count] = kinds[i];
    if (i >= kinds_max) others += count;
    if (i < kinds_max) text += (i == 0 ? "" : ", ") + std::to_string(count) + " " + kind;
  }
  return others == 0 ? text
                     : text + ", " + std::to_string(others) + " of " + std::to_string(kinds.size() - kinds_max) +
                           (kinds.size() == kinds_max + 1 ? " other kind" : " other kinds");
}

bool ParsedLog::wants_process(std::uint64_t pid, std::string_view program) {
  if (!note_process(pid)) return false;
  if (!pid_) pid_ = pid;
  if (pid_ != pid) {
    has_others_ = true;
    if (is_chosen_) return false;
    throw SeveralProcesses("processes " + std::to_string(*pid_) + " and " + std::to_string(pid) + " are in this log");
  }
  if (!has_any_) {
    has_any_ = true;
    add_metadata("pid", std::to_string(pid));
    if (!program.empty()) add_metadata("program", program);
  }
  return true;
}

std::uint32_t ParsedLog::thread_number(std::uint64_t id) {
  if (id == last_thread_id_ && !threads_.empty()) return last_thread_;
  last_thread_id_ = id;
  return last_thread_ = threads_.insert({id, static_cast<std::uint32_t>(threads_.size())}).first->second;
}

std::uint64_t ParsedLog::since_start(std::uint64_t time_ns) {
  if (!start_ns_) start_ns_ = time_ns;
  return time_ns < *start_ns_ ? 0 : std::min(time_ns - *start_ns_, cmt::text::attribute_limit);
}

std::uint64_t ParsedLog::since_unix_start(std::uint64_t unix_ns) {
  if (!start_ns_) add_metadata("start", cmt::text::start_text(unix_ns / 1'000'000'000));
  return since_start(unix_ns);
}

void ParsedLog::add_metadata(std::string_view key, std::string_view value) {
  if (metadata_.size() == cmt::text::metadata_limit) return;
  metadata_.emplace_back(key, value.substr(0, cmt::text::metadata_value_limit));
}

}  // namespace cmt::logs
