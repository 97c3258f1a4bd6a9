#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cmt/event.h"

namespace trace2cmt {

/// A log holds several processes, and none was chosen.
class SeveralProcesses : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a parser finds in a log: the events of one line, and what holds for all. It knows no file.
class Findings {
 public:
  /// Without a pid the log may hold one process only.
  explicit Findings(std::optional<std::uint64_t> pid = std::nullopt) : pid_(pid), is_chosen_(pid.has_value()) {}

  /// Collects the pids of a log instead of its events.
  static Findings of_processes() {
    Findings found;
    found.collects_processes_ = true;
    return found;
  }

  // What a parser calls.

  /// Whether a line of this process is wanted. Throws SeveralProcesses for a second one where none was chosen.
  bool process(std::uint64_t pid, std::string_view program = {});

  /// Whether a line of this thread is wanted, where a log does not tell processes from threads.
  bool is_chosen(std::uint64_t id) {
    const bool is_wanted = note_process(id) && (!is_chosen_ || pid_ == id);
    has_any_ |= is_wanted;
    return is_wanted;
  }

  /// The number of a thread that the log calls `id`: from 0, as they come.
  std::uint32_t thread(std::uint64_t id);

  /// Nanoseconds since the first time of the log. The first of unix() is when the recording started.
  std::uint64_t since_start(std::uint64_t time_ns);
  std::uint64_t since_unix_start(std::uint64_t unix_ns);

  void add(const cmt::Event& event) { events_.push_back(event); }

  /// The line is none of this format: `expected` is what should have stood there.
  void wrong(std::string_view expected) { expected_ = expected; }

  /// The header's `key` (format-spec/text.md), as far as it is known before the first event.
  void describe(std::string_view key, std::string_view value);

  /// Blocks are given by names that are no addresses. To be called before the first event.
  void have_names_only() { names_only_ = true; }

  // What the source calls.

  /// Forgets the events of the last line.
  void next_line() {
    events_.clear();
    expected_ = {};
  }

  const std::vector<cmt::Event>& events() const { return events_; }
  std::string_view expected() const { return expected_; }
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }
  bool names_only() const { return names_only_; }

  /// Whether there was a line of a process that is wanted.
  bool has_any() const { return has_any_; }
  const std::set<std::uint64_t>& processes() const { return processes_; }

 private:
  bool note_process(std::uint64_t id) {
    if (collects_processes_) processes_.insert(id);
    return !collects_processes_;
  }

  std::optional<std::uint64_t> pid_;
  bool is_chosen_;
  bool has_any_ = false;
  bool collects_processes_ = false;
  bool names_only_ = false;
  std::set<std::uint64_t> processes_;
  std::optional<std::uint64_t> start_ns_;
  std::uint64_t last_thread_id_ = 0;
  std::uint32_t last_thread_ = 0;
  tsl::robin_map<std::uint64_t, std::uint32_t> threads_;
  std::vector<cmt::Event> events_;
  std::string_view expected_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

}  // namespace trace2cmt
