#include "process/status.h"

#include <charconv>

#include "process/proc_file.h"

namespace cmt::process {
namespace {

std::uint64_t leading_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto digits = text.find_first_of("0123456789");
  if (digits != text.npos) std::from_chars(text.data() + digits, text.data() + text.size(), value);
  return value;
}

/// The number after "KEY:" at the beginning of a line, or 0.
std::uint64_t figure(std::string_view text, std::string_view key) {
  for (auto at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    const bool begins_line = at == 0 || text[at - 1] == '\n';
    if (!begins_line || text.substr(at + key.size(), 1) != ":") continue;
    const std::string_view rest = text.substr(at + key.size());
    return leading_number(rest.substr(0, rest.find('\n')));
  }
  return 0;
}

}  // namespace

Status parse_status(std::string_view text) {
  const auto bytes = [text](std::string_view key) { return figure(text, key) * 1024; };
  return {.resident_bytes_peak = bytes("VmHWM"),
          .resident_bytes = bytes("VmRSS"),
          .resident_anonymous_bytes = bytes("RssAnon"),
          .resident_file_bytes = bytes("RssFile"),
          .resident_shared_bytes = bytes("RssShmem"),
          .swapped_bytes = bytes("VmSwap"),
          .threads = figure(text, "Threads")};
}

Status read_status(int pid) { return parse_status(read_file(path_of(pid, "status"))); }

Statm parse_statm(std::string_view text) {
  Statm statm;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::uint64_t* field : {&statm.size_pages, &statm.resident_pages, &statm.shared_pages}) {
    while (at != end && *at == ' ') ++at;
    at = std::from_chars(at, end, *field).ptr;
  }
  return statm;
}

Statm read_statm(int pid) { return parse_statm(read_file(path_of(pid, "statm"))); }

}  // namespace cmt::process
