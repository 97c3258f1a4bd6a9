#include "command/traces.h"

#include <poll.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "cmt/reader.h"

namespace cmt::command {
namespace {

namespace fs = std::filesystem;

/// How long a trace may go without growing until it counts as one that is not ours to wait for.
constexpr int patience_ms = 2000;

/// Whether `name` is what `pattern` stands for, without a number.
bool fits(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] == '%' && pattern.size() > 1) {
    const std::string_view rest = pattern.substr(2);
    if (pattern[1] == '%') return !name.empty() && name[0] == '%' && fits(rest, name.substr(1));
    if (pattern[1] == 'n' || pattern[1] == 'p') {
      const auto part = [&](char c) { return pattern[1] == 'n' || (c >= '0' && c <= '9'); };
      for (std::size_t taken = 1; taken <= name.size() && part(name[taken - 1]); ++taken) {
        if (fits(rest, name.substr(taken))) return true;
      }
      return false;
    }
  }
  return !name.empty() && name[0] == pattern[0] && fits(pattern.substr(1), name.substr(1));
}

/// What follows the last dot; empty where there is none.
std::string_view ending_of(std::string_view name) {
  const auto dot = name.rfind('.');
  return dot == name.npos ? std::string_view() : name.substr(dot + 1);
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// The name without the number that the tracer gives to one that is taken: "a.7.2.cmt" is "a.7.cmt", "a.2" is "a".
std::string without_number(std::string_view name) {
  const std::string_view ending = ending_of(name);
  if (is_number(ending)) return std::string(name.substr(0, name.size() - ending.size() - 1));
  const std::string_view stem = name.substr(0, name.size() - std::min(name.size(), ending.size() + 1));
  const std::string_view number = ending_of(stem);
  if (!is_number(number)) return std::string(name);
  return std::string(stem.substr(0, stem.size() - number.size())) + std::string(ending);
}

std::uint64_t count_events(Reader& reader, std::uint64_t& threads) {
  std::set<std::uint64_t> seen;
  std::uint64_t events = 0;
  for (auto batch = reader.read(); !batch.empty(); batch = reader.read()) {
    events += batch.size();
    for (const Event& event : batch) {
      if (seen.empty() || event.thread != *seen.rbegin()) seen.insert(event.thread);
    }
  }
  threads = seen.size();
  return events;
}

Recorded add_traces(const Traces& traces, const std::function<void(const std::string&)>& complain) {
  Recorded recorded;
  for (const std::string& path : traces.added()) {
    try {
      add_trace(path, recorded);
    } catch (const std::exception& error) {
      complain(error.what());
    }
  }
  return recorded;
}

}  // namespace

bool stands_for(std::string_view pattern, std::string_view name) {
  return fits(pattern, name) || fits(pattern, without_number(name));
}

Traces::Traces(const std::string& pattern) {
  const auto slash = pattern.rfind('/');
  folder_ = slash == pattern.npos ? "." : pattern.substr(0, slash + 1);
  pattern_ = slash == pattern.npos ? pattern : pattern.substr(slash + 1);
  before_ = matching();
}

std::vector<std::string> Traces::added() const {
  std::vector<std::string> names;
  for (const std::string& name : matching()) {
    if (!before_.contains(name)) names.push_back(folder_ == "." ? name : folder_ + name);
  }
  return names;
}

std::set<std::string> Traces::matching() const {
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (stands_for(pattern_, name)) names.insert(name);
  }
  return names;
}

void add_trace(const std::string& path, Recorded& recorded) {
  if (fs::file_size(path) == 0) {  // its recorder has not come to its first line
    ++recorded.files, ++recorded.unfinished;
    return;
  }
  Reader reader(path, {.addresses = false, .times = false, .usable = false});
  ++recorded.files;
  recorded.bytes += fs::file_size(path);
  if (const auto& totals = reader.totals()) {
    recorded.events += totals->events;
    recorded.threads += totals->threads;
    recorded.repairs += totals->repairs.total();
    recorded.unfinished += totals->truncated;
    return;
  }
  std::uint64_t threads = 0;
  recorded.events += count_events(reader, threads);
  recorded.threads += threads;
  recorded.repairs += reader.repairs().total();
  recorded.unfinished += reader.truncated();
}

Recorded wait_for_traces(const Traces& traces, const std::function<void(const std::string&)>& complain) {
  constexpr int step_ms = 20;
  Recorded recorded = add_traces(traces, complain);
  for (int waited_ms = 0; recorded.unfinished != 0 && waited_ms < patience_ms; waited_ms += step_ms) {
    poll(nullptr, 0, step_ms);
    const Recorded now = add_traces(traces, complain);
    if (now.bytes != recorded.bytes) waited_ms = 0;
    recorded = now;
  }
  return recorded;
}

}  // namespace cmt::command
