/// The settings that a search tries: which allocator has them, which values are worth a try, and how they are set.
///
/// A setting is a row of one table (settings.cpp). A choice is a setting with one of its values. A candidate is an
/// allocator with some choices, of different settings. Its name is one that --alloc takes:
///
///     libc,GLIBC_TUNABLES=glibc.malloc.arena_max=1:glibc.malloc.tcache_count=0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cmtreplay/run/allocator.h"

namespace cmt::replay {

/// A variable that contains several settings: what separates these, and a name from its value.
struct ListVariable {
  std::string_view name;
  char separator, assignment;
};

/// nullptr: the variable is one setting.
const ListVariable* list_variable(std::string_view name);

/// A row of the table.
struct TunedSetting {
  std::string_view kind;      ///< of the allocator: libc, jemalloc, mimalloc, tcmalloc, tbb, scudo
  std::string_view variable;  ///< of the environment
  std::string_view keys;      ///< in the variable, separated by blanks; empty: the variable is the setting
  std::string_view values;    ///< separated by blanks; with several keys a value has a comma between their values
  bool by_clock = false;      ///< gives memory back after a time, so that a replay needs recorded times
  std::string_view since;     ///< the version that has it first
  std::string_view source;    ///< of the documentation
};

const std::vector<TunedSetting>& tuned_settings();

/// A value for a row of the table.
struct Choice {
  std::size_t setting = 0;
  std::string value = {};

  bool operator==(const Choice&) const = default;
};

/// An allocator with choices.
struct Candidate {
  std::string allocator = {};  ///< as --alloc names it: "jemalloc", "./my.so"
  std::vector<Choice> choices = {};

  bool operator==(const Candidate&) const = default;
  /// As --alloc takes it.
  std::string name() const;
  /// For people: "libc arena_max=1 tcache_count=0".
  std::string title() const;
  /// "NAME=VALUE" each.
  std::vector<std::string> environment() const;
  /// Whether memory is given back after a time, by one of its settings.
  bool is_by_clock() const;
};

/// The candidates with one choice each, of an allocator of this kind, in the order of the table.
std::vector<Candidate> single_choices(const std::string& allocator, const std::string& kind);

/// The candidate with the choices of both. They have no setting in common (asserted).
Candidate joined(const Candidate& a, const Candidate& b);
bool can_join(const Candidate& a, const Candidate& b);

/// Three ways to set an environment: a line for a shell, one of a systemd unit, and one of a Dockerfile.
struct SettingLines {
  std::string env = {}, systemd = {}, dockerfile = {};
};

/// `program`: the command that the line for the shell starts. `preload`: the library for LD_PRELOAD; empty: none.
SettingLines setting_lines(const std::string& preload, const std::vector<std::string>& environment,
                           const std::string& program);

}  // namespace cmt::replay
