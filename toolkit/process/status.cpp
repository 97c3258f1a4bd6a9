#include "toolkit/process/status.h"

#include <charconv>

#include "toolkit/process/figures.h"
#include "toolkit/process/proc_file.h"

namespace cmt::process {
namespace {

std::uint64_t figure(std::string_view text, std::string_view key) { return find_figure(text, key).value_or(0); }

}  // namespace

Status parse_status(std::string_view text) {
  const auto bytes = [text](std::string_view key) { return figure(text, key) * 1024; };
  return {.resident_bytes_peak = bytes("VmHWM"),
          .resident_bytes = bytes("VmRSS"),
          .resident_anonymous_bytes = bytes("RssAnon"),
          .resident_file_bytes = bytes("RssFile"),
          .resident_shared_bytes = bytes("RssShmem"),
          .swapped_bytes = bytes("VmSwap"),
          .threads = figure(text, "Threads"),
          .tracer = static_cast<int>(figure(text, "TracerPid")),
          .blocked_signals = find_figure(text, "SigBlk", 16).value_or(0)};
}

Status read_status(int pid, const std::string& root) { return parse_status(read_file(path_of(pid, "status", root))); }

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

Statm read_statm(int pid, const std::string& root) { return parse_statm(read_file(path_of(pid, "statm", root))); }

}  // namespace cmt::process
