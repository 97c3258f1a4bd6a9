// A recording holds what changed, so it is read as it was written: from moment to moment, the mappings that there are
// being kept. Only of a process in which something changed they are sorted into kinds anew.

#include "cmtwatch/recording/kinds.h"

#include <algorithm>
#include <map>

#include "cmtwatch/recording/breakdown.h"

namespace cmt::watch {
namespace {

using process::Mapping;

constexpr std::size_t processes_named = 6;

MemoryKind kind_of(const Mapping& mapping, std::string_view part) {
  if (part == "heap") return MemoryKind::heap;
  if (part.starts_with("stacks") || part.starts_with("thread stacks")) return MemoryKind::stacks;
  if (part == "anonymous" || part.starts_with("[anon:")) return MemoryKind::anonymous;
  for (const char* const shared : {"/memfd:", "/dev/shm/", "/dev/zero", "/SYSV", "[anon_shmem:"}) {
    if (mapping.name.starts_with(shared)) return MemoryKind::shared;
  }
  return part.starts_with("/") ? MemoryKind::files : MemoryKind::others;
}

std::size_t place(MemoryKind kind) { return static_cast<std::size_t>(kind); }

void add(BytesByKind& sum, const BytesByKind& part) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
}

/// The mappings of one process as moments go by.
class Process {
 public:
  /// The mapping of a number, to be changed; made by `make` where it is new.
  template <class Make>
  Mapping& at(std::int64_t number, Make make) {
    changed_ = true;
    const auto found = mappings_.find(number);
    return found != mappings_.end() ? found->second : mappings_.emplace(number, make()).first->second;
  }
  void remove(std::int64_t number) { changed_ |= mappings_.erase(number) != 0; }

  const BytesByKind& bytes() {
    if (!changed_) return bytes_;
    std::vector<Mapping> sorted;
    for (const auto& [id, mapping] : mappings_) sorted.push_back(mapping);
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    changed_ = false;
    return bytes_ = by_kind(sorted);
  }

 private:
  std::map<std::int64_t, Mapping> mappings_;
  BytesByKind bytes_{};
  bool changed_ = true;
};

class RecordingOfKinds {
 public:
  explicit RecordingOfKinds(Database& database)
      : ticks_(database, "select id, begin_ns from tick order by id"),
        changes_(database,
                 "select tick_id, process_id, mapping_id, proportional_bytes, swapped_bytes from mapping_change "
                 "join mapping on mapping.id = mapping_id order by tick_id"),
        samples_(
            database,
            "select tick_id, process_id, proportional_bytes, resident_bytes, mappings_readable from process_sample "
            "order by tick_id"),
        mapping_(database,
                 "select begin_address, end_address, permissions, text from mapping left join name on name.id = "
                 "name_id where mapping.id = ?"),
        changes_left_(changes_.step()),
        samples_left_(samples_.step()) {
    Statement processes(database,
                        "select process.id, last_tick, pid, text from process join name on name.id = name_id");
    while (processes.step()) {
      ends_.emplace(processes.number(1), processes.number(0));
      totals_[processes.number(0)] = {static_cast<int>(processes.number(2)), processes.text(3), {}};
    }
  }

  KindSeries read() {
    while (ticks_.step()) {
      const std::int64_t tick = ticks_.number(0);
      series_.time_ns.push_back(ticks_.number(1));
      series_.sums.emplace_back();
      series_.by_kind.emplace_back();
      while (changes_left_ && changes_.number(0) <= tick) take_change();
      while (samples_left_ && samples_.number(0) <= tick) take_sample();
      for (; !ends_.empty() && ends_.begin()->first <= tick; ends_.erase(ends_.begin()))
        processes_.erase(ends_.begin()->second);
    }
    name_largest();
    return std::move(series_);
  }

 private:
  void take_change() {
    Process& process = processes_[changes_.number(1)];
    const std::int64_t id = changes_.number(2);
    const auto proportional = changes_.bytes_or_null(3);
    if (!proportional) {
      process.remove(id);
    } else {
      Mapping& now = process.at(id, [&] { return mapping(id); });
      now.proportional_bytes = *proportional;
      now.swapped_bytes = static_cast<std::uint64_t>(changes_.number(4));
    }
    changes_left_ = changes_.step();
  }

  Mapping mapping(std::int64_t id) {
    Mapping mapping;
    mapping_.bind(id);
    while (mapping_.step()) {
      mapping.begin = static_cast<std::uint64_t>(mapping_.number(0));
      mapping.end = static_cast<std::uint64_t>(mapping_.number(1));
      mapping.permissions = mapping_.text(2);
      mapping.name = mapping_.text(3);
    }
    return mapping;
  }

  void take_sample() {
    const std::int64_t process = samples_.number(1);
    const auto proportional = samples_.bytes_or_null(2), resident = samples_.bytes_or_null(3);
    Summed own;
    own.add(proportional, resident);
    BytesByKind& kinds = series_.by_kind.back();
    if (proportional && samples_.number_or_null(4).value_or(0) != 0)
      add(kinds, processes_[process].bytes());
    else
      kinds[place(proportional ? MemoryKind::totals : MemoryKind::not_read)] += own.bytes();
    series_.sums.back().add(own);
    KindSeries::Process& total = totals_[process];
    total.all.add(own);
    total.bytes.resize(series_.time_ns.size());
    total.bytes.back() = own.bytes();
    samples_left_ = samples_.step();
  }

  /// The series of the largest processes, and one of the others.
  void name_largest() {
    const auto most = [](const KindSeries::Process& process) {
      const auto& bytes = process.bytes;
      return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
    };
    std::vector<KindSeries::Process> all;
    for (auto& [id, process] : totals_) all.push_back(std::move(process));
    if (all.size() < 2) return;
    std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return most(a) > most(b); });
    KindSeries::Process others{0, "others", std::vector<std::uint64_t>(series_.time_ns.size())};
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].bytes.resize(series_.time_ns.size());
      if (i < processes_named) {
        series_.processes.push_back(std::move(all[i]));
      } else {
        others.all.add(all[i].all);
        for (std::size_t t = 0; t < series_.time_ns.size(); ++t) others.bytes[t] += all[i].bytes[t];
      }
    }
    if (all.size() > processes_named) series_.processes.push_back(std::move(others));
  }

  Statement ticks_, changes_, samples_, mapping_;
  bool changes_left_, samples_left_;
  std::map<std::int64_t, Process> processes_;           ///< by the recording's number
  std::multimap<std::int64_t, std::int64_t> ends_;      ///< the last tick of a process
  std::map<std::int64_t, KindSeries::Process> totals_;  ///< by the recording's number
  KindSeries series_;
};

}  // namespace

std::string_view name_of(MemoryKind kind) {
  constexpr std::array<std::string_view, memory_kinds> names{"heap",           "anonymous",         "stacks",
                                                             "files",          "shared memory",     "others",
                                                             "not told apart", "mappings not read", "swapped out"};
  return names[place(kind)];
}

Metric metric_of(MemoryKind kind) {
  if (kind == MemoryKind::swapped) return Metric::swap;
  return kind == MemoryKind::not_read ? Metric::rss : Metric::pss;
}

BytesByKind by_kind(const std::vector<Mapping>& mappings) {
  BytesByKind bytes{};
  const std::vector<Part> parts = parts_of(mappings);
  for (std::size_t i = 0; i < mappings.size(); ++i) {
    bytes[place(kind_of(mappings[i], parts[i].name))] += mappings[i].proportional_bytes;
    bytes[place(MemoryKind::swapped)] += mappings[i].swapped_bytes;
  }
  return bytes;
}

KindSeries read_kinds(Database& database) { return RecordingOfKinds(database).read(); }

}  // namespace cmt::watch
