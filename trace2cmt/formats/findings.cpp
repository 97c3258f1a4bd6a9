#include "trace2cmt/formats/findings.h"

#include <algorithm>
#include <ctime>

#include "libcmt/text/parser.h"

namespace trace2cmt {
namespace {

constexpr std::uint64_t ns_a_second = 1'000'000'000;

std::string iso_8601(std::uint64_t unix_ns) {
  const auto seconds = static_cast<std::time_t>(unix_ns / ns_a_second);
  std::tm parts{};
  char text[32];
  if (gmtime_r(&seconds, &parts) == nullptr) return {};
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts));
}

}  // namespace

bool Findings::process(std::uint64_t pid, std::string_view program) {
  if (!note_process(pid)) return false;
  if (!pid_) pid_ = pid;
  if (pid_ != pid) {
    if (is_chosen_) return false;
    throw SeveralProcesses("processes " + std::to_string(*pid_) + " and " + std::to_string(pid) +
                           " are in this log: choose one with --pid=N, or name an output for a file of each with -o");
  }
  if (!has_any_) {
    has_any_ = true;
    describe("pid", std::to_string(pid));
    if (!program.empty()) describe("program", program);
  }
  return true;
}

std::uint32_t Findings::thread(std::uint64_t id) {
  if (id == last_thread_id_ && !threads_.empty()) return last_thread_;
  last_thread_id_ = id;
  return last_thread_ = threads_.insert({id, static_cast<std::uint32_t>(threads_.size())}).first->second;
}

std::uint64_t Findings::since_start(std::uint64_t time_ns) {
  if (!start_ns_) start_ns_ = time_ns;
  return time_ns < *start_ns_ ? 0 : std::min(time_ns - *start_ns_, cmt::text::attribute_limit);
}

std::uint64_t Findings::since_unix_start(std::uint64_t unix_ns) {
  if (!start_ns_) describe("start", iso_8601(unix_ns));
  return since_start(unix_ns);
}

void Findings::describe(std::string_view key, std::string_view value) {
  if (metadata_.size() == cmt::text::metadata_limit) return;
  metadata_.emplace_back(key, value.substr(0, cmt::text::metadata_value_limit));
}

}  // namespace trace2cmt
