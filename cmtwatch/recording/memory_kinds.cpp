// A recording holds changes, so it is read as it was written, from moment to moment, and the current mappings are kept.
// They are sorted into kinds again only for a process in which a mapping changed.

#include "cmtwatch/recording/memory_kinds.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "toolkit/output/numbers.h"

namespace cmt::watch {
namespace {

using process::Mapping;

constexpr std::size_t processes_named = 6, mappings_named = 7;

constexpr std::uint64_t guard_bytes_max = 64 * 1024;

/// The parts that are listed first, whatever their size.
constexpr std::string_view first_parts[] = {"stacks", "thread stacks (guessed)", "heap", "anonymous", "sockets"};

bool is_guard(const Mapping& mapping) {
  return mapping.name.empty() && mapping.permissions.starts_with("---") &&
         mapping.end - mapping.begin <= guard_bytes_max;
}

bool is_private_data(const Mapping& mapping) { return mapping.name.empty() && mapping.permissions.starts_with("rw-p"); }

/// The part that a mapping belongs to. `before` is the mapping that ends where it begins, if any.
std::string part_name(const Mapping& mapping, const Mapping* before) {
  if (mapping.name.starts_with("[stack")) return "stacks";
  if (mapping.name == "[heap]") return "heap";
  if (mapping.name.starts_with("socket:")) return "sockets";
  if (!mapping.name.empty()) return mapping.name;
  return before && is_private_data(mapping) && is_guard(*before) ? "thread stacks (guessed)" : "anonymous";
}

MemoryPart whole_part(std::string name, const Mapping& mapping) {
  return {std::move(name),      1, mapping.resident_bytes, mapping.proportional_bytes, mapping.anonymous_bytes,
          mapping.swapped_bytes};
}

/// Splits the zero-initialised data off the part of a whole mapping.
MemoryPart take_zero_data(MemoryPart& whole, std::string name, std::uint64_t bytes) {
  MemoryPart data{.name = std::move(name)};
  const auto take = [](std::uint64_t& from, std::uint64_t most) {
    const std::uint64_t taken = std::min(from, most);
    from -= taken;
    return taken;
  };
  data.resident_bytes = take(whole.resident_bytes, bytes);
  data.proportional_bytes = take(whole.proportional_bytes, data.resident_bytes);
  data.anonymous_bytes = take(whole.anonymous_bytes, data.resident_bytes);
  data.swapped_bytes = take(whole.swapped_bytes, bytes - data.resident_bytes);
  return data;
}

void add_part(MemoryPart& sum, const MemoryPart& part) {
  sum.mappings += part.mappings;
  sum.resident_bytes += part.resident_bytes;
  sum.proportional_bytes += part.proportional_bytes;
  sum.anonymous_bytes += part.anonymous_bytes;
  sum.swapped_bytes += part.swapped_bytes;
}

MemoryKind kind_of(std::string_view part) {
  if (part == "heap") return MemoryKind::heap;
  if (part.starts_with("stacks") || part.starts_with("thread stacks")) return MemoryKind::stacks;
  if (part == "anonymous" || part.starts_with("[anon:")) return MemoryKind::anonymous;
  for (const char* const shared : {"/memfd:", "/dev/shm/", "/dev/zero", "/SYSV", "[anon_shmem:"}) {
    if (part.starts_with(shared)) return MemoryKind::shared;
  }
  return part.starts_with("/") ? MemoryKind::files : MemoryKind::others;
}

std::size_t index_of(MemoryKind kind) { return static_cast<std::size_t>(kind); }

void add_bytes(BytesByKind& sum, const BytesByKind& part) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
}

/// Mappings that have a band together: those of a process with one name, or one without a name, by its first address
/// when it was first seen.
using BandKey = std::pair<std::int64_t, std::string>;

struct Band {
  std::uint64_t now = 0, most = 0;
  Course<std::uint64_t> bytes{};
};

struct CurrentMapping {
  RecordedMapping mapping;
  std::string band_name;
  Band* band = nullptr;  ///< none: it is one of the rest
};

/// The current mappings of one process.
struct MappedProcess {
  std::map<std::int64_t, CurrentMapping> mappings;  ///< by the recording's id
  std::int64_t vanishing_tick = 0;
  std::vector<CurrentMapping> vanished;  ///< at that tick, without a name
  bool changed = true;                   ///< since `bytes` was computed
  BytesByKind bytes{};

  const BytesByKind& current_bytes() {
    if (!changed) return bytes;
    std::vector<RecordedMapping> sorted;
    for (const auto& [id, current] : mappings) sorted.push_back(current.mapping);
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    changed = false;
    return bytes = by_kind(sorted);
  }
};

std::uint64_t most(const std::vector<std::uint64_t>& bytes) {
  return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
}

/// The bytes of all mappings that were read.
std::vector<std::uint64_t> mapped_bytes(const std::vector<BytesByKind>& moments) {
  std::vector<std::uint64_t> bytes;
  for (const BytesByKind& kinds : moments)
    bytes.push_back(std::accumulate(kinds.begin(), kinds.begin() + index_of(MemoryKind::totals), std::uint64_t{0}));
  return bytes;
}

void subtract(std::vector<std::uint64_t>& bytes, const std::vector<std::uint64_t>& part) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] -= std::min(bytes[i], part[i]);
}

class KindReader {
 public:
  /// `bands`: the mappings that have one; none: all, to find the largest.
  explicit KindReader(database::Database& database, const std::vector<BandKey>& bands = {})
      : ticks_(database, "select id, begin_ns from tick order by id"),
        changes_(database,
                 "select tick_id, process_id, mapping_id, proportional_bytes, swapped_bytes from mapping_change "
                 "join mapping on mapping.id = mapping_id order by tick_id, mapping_id"),
        samples_(
            database,
            "select tick_id, process_id, proportional_bytes, resident_bytes, mappings_readable from process_sample "
            "order by tick_id"),
        mapping_(database, std::string("select ") + mapping_columns +
                               " from mapping left join name on name.id = name_id where mapping.id = ?"),
        changes_left_(changes_.step()),
        samples_left_(samples_.step()) {
    database::Statement processes(
        database, "select process.id, last_tick, pid, text from process join name on name.id = name_id");
    while (processes.step()) {
      ends_.emplace(processes.number(1), processes.number(0));
      last_ticks_.emplace(processes.number(0), processes.number(1));
      totals_[processes.number(0)] = {static_cast<int>(processes.number(2)), processes.text(3), {}};
    }
    for (const BandKey& key : bands) bands_.try_emplace(key);
    finds_largest_ = bands.empty();
  }

  std::vector<BandKey> largest_mappings(std::size_t most) {
    while (ticks_.step()) {
      apply_changes(ticks_.number(0));
      end_processes(ticks_.number(0));
    }
    std::vector<BandKey> keys;
    for (const auto& [key, band] : bands_) keys.push_back(key);
    std::stable_sort(keys.begin(), keys.end(),
                     [this](const BandKey& a, const BandKey& b) { return bands_.at(a).most > bands_.at(b).most; });
    keys.resize(std::min(keys.size(), most));
    return keys;
  }

  KindSeries read() {
    while (ticks_.step()) {
      const std::int64_t tick = ticks_.number(0);
      series_.time_ns.push_back(ticks_.time_ns(1));
      for (auto* const sums : {&series_.sums.at, &series_.sums.after}) sums->emplace_back();
      for (auto* const kinds : {&series_.by_kind.at, &series_.by_kind.after}) kinds->emplace_back();
      apply_changes(tick);
      while (samples_left_ && samples_.number(0) <= tick) apply_sample();
      for (auto& [key, band] : bands_) {
        const std::uint64_t now = read_now_.contains(key.first) ? band.now : 0;
        band.bytes.at.push_back(now);
        band.bytes.after.push_back(last_ticks_[key.first] > tick ? now : 0);
      }
      read_now_.clear();
      end_processes(tick);
    }
    name_mappings();
    name_largest();
    return std::move(series_);
  }

 private:
  void apply_changes(std::int64_t tick) {
    std::vector<Band*> changed;
    while (changes_left_ && changes_.number(0) <= tick) {
      if (Band* const band = apply_change()) changed.push_back(band);
    }
    for (Band* const band : changed) band->most = std::max(band->most, band->now);
  }

  /// Returns the band that has changed.
  Band* apply_change() {
    const std::int64_t id = changes_.number(2), owner = changes_.number(1);
    MappedProcess& process = processes_[owner];
    const auto proportional = changes_.bytes_or_null(3);
    if (std::exchange(process.vanishing_tick, changes_.number(0)) != changes_.number(0)) process.vanished.clear();
    process.changed = true;
    const auto [known, is_new] = process.mappings.try_emplace(id);
    CurrentMapping& current = known->second;
    if (is_new) {
      current.mapping = mapping(id);
      current.band_name = band_name(process, current.mapping);
      current.band = band_of(owner, current.band_name);
    }
    Band* const band = current.band;
    if (band) band->now += proportional.value_or(0) - current.mapping.proportional_bytes;
    current.mapping.proportional_bytes = proportional.value_or(0);
    current.mapping.swapped_bytes = changes_.value<std::uint64_t>(4);
    if (!proportional) {
      if (current.mapping.name.empty()) process.vanished.push_back(std::move(current));
      process.mappings.erase(known);
    }
    changes_left_ = changes_.step();
    return band;
  }

  /// A mapping that grows or shrinks at either end is recorded as another mapping in the same place.
  static std::string band_name(const MappedProcess& process, const RecordedMapping& mapping) {
    if (!mapping.name.empty()) return mapping.name;
    for (const CurrentMapping& before : process.vanished) {
      if (before.mapping.begin < mapping.end && mapping.begin < before.mapping.end) return before.band_name;
    }
    return "anonymous " + output::hex(mapping.begin);
  }

  Band* band_of(std::int64_t process, const std::string& name) {
    const BandKey key(process, name);
    if (finds_largest_) return &bands_.try_emplace(key).first->second;
    const auto wanted = bands_.find(key);
    return wanted == bands_.end() ? nullptr : &wanted->second;
  }

  void end_processes(std::int64_t tick) {
    for (; !ends_.empty() && ends_.begin()->first <= tick; ends_.erase(ends_.begin())) {
      for (const auto& [id, current] : processes_[ends_.begin()->second].mappings) {
        if (current.band) current.band->now -= current.mapping.proportional_bytes;
      }
      processes_.erase(ends_.begin()->second);
    }
  }

  RecordedMapping mapping(std::int64_t id) {
    RecordedMapping mapping;
    mapping_.bind(id);
    while (mapping_.step()) mapping = read_mapping(mapping_, 0);
    return mapping;
  }

  void apply_sample() {
    const std::int64_t process = samples_.number(1);
    const auto proportional = samples_.bytes_or_null(2), resident = samples_.bytes_or_null(3);
    MemorySum own;
    own.add(proportional, resident);
    BytesByKind kinds{};
    const bool read = proportional && samples_.number_or_null(4).value_or(0) != 0;
    if (read) {
      kinds = processes_[process].current_bytes();
      read_now_.insert(process);
    } else {
      kinds[index_of(proportional ? MemoryKind::totals : MemoryKind::not_read)] = own.bytes();
    }
    KindSeries::Band& total = totals_[process];
    total.all.add(own);
    series_.all.add(own);
    const auto add = [&](std::vector<MemorySum>& sums, std::vector<BytesByKind>& by_kind,
                         std::vector<std::uint64_t>& bytes) {
      sums.back().add(own);
      add_bytes(by_kind.back(), kinds);
      bytes.resize(series_.time_ns.size());
      bytes.back() = own.bytes();
    };
    add(series_.sums.at, series_.by_kind.at, total.bytes.at);
    if (last_ticks_[process] > samples_.number(0)) add(series_.sums.after, series_.by_kind.after, total.bytes.after);
    samples_left_ = samples_.step();
  }

  /// The bands, the largest first, and what all other mappings have.
  void name_mappings() {
    if (bands_.empty()) return;
    KindSeries::Band others{0, "others"};
    others.bytes = {mapped_bytes(series_.by_kind.at), mapped_bytes(series_.by_kind.after)};
    for (auto& [key, band] : bands_) {
      subtract(others.bytes.at, band.bytes.at);
      subtract(others.bytes.after, band.bytes.after);
      series_.mappings.push_back({totals_[key.first].pid, key.second, std::move(band.bytes)});
    }
    std::stable_sort(series_.mappings.begin(), series_.mappings.end(),
                     [](const auto& a, const auto& b) { return most(a.bytes.at) > most(b.bytes.at); });
    series_.mappings.push_back(std::move(others));
  }

  /// Keeps the series of the largest processes, and adds up those of the others.
  void name_largest() {
    const std::size_t moments = series_.time_ns.size();
    std::vector<KindSeries::Band> all;
    for (auto& [id, process] : totals_) all.push_back(std::move(process));
    if (all.size() < 2) return;
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return most(a.bytes.at) > most(b.bytes.at); });
    KindSeries::Band others{0, "others", {std::vector<std::uint64_t>(moments), std::vector<std::uint64_t>(moments)}};
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].bytes.at.resize(moments);
      all[i].bytes.after.resize(moments);
      if (i < processes_named) {
        series_.processes.push_back(std::move(all[i]));
      } else {
        others.all.add(all[i].all);
        for (std::size_t t = 0; t < moments; ++t) others.bytes.at[t] += all[i].bytes.at[t];
        for (std::size_t t = 0; t < moments; ++t) others.bytes.after[t] += all[i].bytes.after[t];
      }
    }
    if (all.size() > processes_named) series_.processes.push_back(std::move(others));
  }

  database::Statement ticks_, changes_, samples_, mapping_;
  bool changes_left_, samples_left_;
  std::map<std::int64_t, MappedProcess> processes_;  ///< by the recording's id
  std::map<std::int64_t, std::int64_t> last_ticks_;  ///< of processes
  std::multimap<std::int64_t, std::int64_t> ends_;   ///< the last tick of a process
  std::map<std::int64_t, KindSeries::Band> totals_;  ///< by the recording's id
  std::map<BandKey, Band> bands_;
  bool finds_largest_ = false;
  std::set<std::int64_t> read_now_;  ///< processes whose mappings were read at this tick
  KindSeries series_;
};

}  // namespace

std::vector<MemoryPart> parts_of(const std::vector<RecordedMapping>& mappings) {
  std::vector<MemoryPart> parts;
  const Mapping* before = nullptr;
  for (const RecordedMapping& mapping : mappings) {
    const Mapping* const touching = before && before->end == mapping.begin ? before : nullptr;
    before = &mapping;
    const bool has_data = touching && mapping.zero_data_bytes != 0 && touching->name.starts_with("/");
    const bool only_data = has_data && mapping.zero_data_bytes >= mapping.end - mapping.begin;
    MemoryPart part = whole_part(only_data ? touching->name : part_name(mapping, touching), mapping);
    if (has_data && !only_data) parts.push_back(take_zero_data(part, touching->name, mapping.zero_data_bytes));
    parts.push_back(std::move(part));
  }
  assert(parts.size() >= mappings.size() && parts.size() <= 2 * mappings.size());
  return parts;
}

MemoryBreakdown break_down(const std::vector<std::vector<RecordedMapping>>& processes, std::size_t named_max) {
  std::map<std::string, MemoryPart> sums;
  MemoryBreakdown breakdown;
  breakdown.sum.name = "in all";
  for (const auto& mappings : processes) {
    for (const MemoryPart& part : parts_of(mappings)) {
      add_part(sums.try_emplace(part.name, MemoryPart{.name = part.name}).first->second, part);
      add_part(breakdown.sum, part);
    }
  }
  for (const std::string_view name : first_parts) {
    if (auto part = sums.extract(std::string(name))) breakdown.parts.push_back(std::move(part.mapped()));
  }
  std::vector<MemoryPart> named;
  for (auto& [name, part] : sums) named.push_back(std::move(part));
  std::stable_sort(named.begin(), named.end(),
                   [](const MemoryPart& a, const MemoryPart& b) { return a.resident_bytes > b.resident_bytes; });
  MemoryPart others{.name = "others"};
  for (std::size_t i = 0; i < named.size(); ++i)
    i < named_max ? breakdown.parts.push_back(named[i]) : add_part(others, named[i]);
  if (others.mappings != 0) breakdown.parts.push_back(others);
  return breakdown;
}

std::string_view name_of(MemoryKind kind) {
  constexpr std::array<std::string_view, memory_kinds> names{"heap",           "anonymous",         "stacks",
                                                             "files",          "shared memory",     "others",
                                                             "not told apart", "mappings not read", "swapped out"};
  return names[index_of(kind)];
}

Metric metric_of(MemoryKind kind) {
  if (kind == MemoryKind::swapped) return Metric::swap;
  return kind == MemoryKind::not_read ? Metric::rss : Metric::pss;
}

BytesByKind by_kind(const std::vector<RecordedMapping>& mappings) {
  BytesByKind bytes{};
  for (const MemoryPart& part : parts_of(mappings)) {
    bytes[index_of(kind_of(part.name))] += part.proportional_bytes;
    bytes[index_of(MemoryKind::swapped)] += part.swapped_bytes;
  }
  return bytes;
}

KindSeries read_kinds(database::Database& database) {
  const std::vector<BandKey> largest = KindReader(database).largest_mappings(mappings_named);
  KindSeries series = KindReader(database, largest).read();
  series.parts = read_part_series(database);
  return series;
}

}  // namespace cmt::watch
