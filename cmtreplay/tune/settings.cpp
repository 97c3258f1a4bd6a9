// The table of settings, and the texts that set them.
#include "cmtreplay/tune/settings.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <sstream>

#include "toolkit/command/command_line.h"

namespace cmt::replay {
namespace {

constexpr std::string_view tunables_variable = "GLIBC_TUNABLES",
                           glibc_manual = "glibc manual, Memory Allocation Tunables", conf_variable = "MALLOC_CONF",
                           jemalloc_manual = "jemalloc(3), TUNING",
                           mimalloc_manual = "mimalloc's readme, Environment Options",
                           tcmalloc_manual = "gperftools, docs/tcmalloc.html",
                           tbb_manual = "oneTBB, scalable memory allocator",
                           scudo_manual = "LLVM, Scudo Hardened Allocator";

std::vector<std::string> words_of(std::string_view text, char separator = ' ') {
  std::vector<std::string> words;
  std::istringstream stream{std::string(text)};
  for (std::string word; std::getline(stream, word, separator);) words.push_back(word);
  return words;
}

const TunedSetting& row_of(const Choice& choice) { return tuned_settings().at(choice.setting); }

constexpr std::array<ListVariable, 3> list_variables{
    {{tunables_variable, ':', '='}, {conf_variable, ',', ':'}, {"SCUDO_OPTIONS", ':', '='}}};

/// A choice as its variable contains it: "glibc.malloc.arena_max=1".
std::string value_text(const Choice& choice) {
  const TunedSetting& row = row_of(choice);
  const ListVariable* const list = list_variable(row.variable);
  if (!list) return choice.value;
  const std::vector<std::string> keys = words_of(row.keys), values = words_of(choice.value, ',');
  assert(keys.size() == values.size());
  std::string text;
  for (std::size_t i = 0; i < keys.size(); ++i)
    text += (i == 0 ? "" : std::string(1, list->separator)) + keys[i] + list->assignment + values[i];
  return text;
}

/// The short name of a choice: "arena_max=1", "RELEASE_RATE=10".
std::string short_text(const Choice& choice) {
  const TunedSetting& row = row_of(choice);
  if (row.keys.empty()) return std::string(row.variable) + "=" + choice.value;
  std::string text;
  const std::vector<std::string> keys = words_of(row.keys), values = words_of(choice.value, ',');
  for (std::size_t i = 0; i < keys.size(); ++i)
    text += (i == 0 ? "" : " ") + keys[i].substr(keys[i].rfind('.') + 1) + "=" + values[i];
  return text;
}

/// A text in double quotes. `escape` is before characters that would mean something else: `$` in a Dockerfile, and `%`
/// in a unit of systemd, where it is its own escape.
std::string quoted(const std::string& text, char special, char escape) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == special) result += escape;
    result += c;
  }
  return result + '"';
}

}  // namespace

const ListVariable* list_variable(std::string_view name) {
  const auto found = std::find_if(list_variables.begin(), list_variables.end(),
                                  [name](const ListVariable& each) { return each.name == name; });
  return found == list_variables.end() ? nullptr : &*found;
}

const std::vector<TunedSetting>& tuned_settings() {
  // A threshold for mmap that is set is no longer raised by the program's frees, and so is one for trimming or a pad.
  static const std::vector<TunedSetting> all{
      {"libc", tunables_variable, "glibc.malloc.arena_max", "1 2 4", false, "2.26", glibc_manual},
      {"libc", tunables_variable, "glibc.malloc.mmap_threshold glibc.malloc.trim_threshold",
       "65536,131072 131072,262144 1048576,2097152 33554432,67108864", false, "2.26", glibc_manual},
      {"libc", tunables_variable, "glibc.malloc.top_pad", "0 65536 1048576 16777216", false, "2.26", glibc_manual},
      {"libc", tunables_variable, "glibc.malloc.tcache_count", "0 2 32 127", false, "2.26", glibc_manual},
      {"libc", tunables_variable, "glibc.malloc.tcache_max", "64 256 65536", false, "2.26; above 1032: 2.42",
       glibc_manual},
      {"libc", tunables_variable, "glibc.malloc.mxfast", "0 160", false, "2.26", glibc_manual},
      {"libc", tunables_variable, "glibc.malloc.hugetlb", "1 2", false, "2.35", glibc_manual},
      {"jemalloc", conf_variable, "narenas", "1 2 4", false, "3.0", jemalloc_manual},
      {"jemalloc", conf_variable, "percpu_arena", "percpu phycpu", false, "5.0", jemalloc_manual},
      {"jemalloc", conf_variable, "dirty_decay_ms", "0 1000 60000 -1", true, "5.0", jemalloc_manual},
      {"jemalloc", conf_variable, "muzzy_decay_ms", "1000 10000", true, "5.0", jemalloc_manual},
      {"jemalloc", conf_variable, "background_thread", "true", true, "5.0", jemalloc_manual},
      {"jemalloc", conf_variable, "thp", "always never", false, "5.1", jemalloc_manual},
      {"jemalloc", conf_variable, "metadata_thp", "auto always", false, "5.0", jemalloc_manual},
      {"jemalloc", conf_variable, "tcache", "false", false, "2.0", jemalloc_manual},
      {"jemalloc", conf_variable, "tcache_max", "1024 4096 262144", false, "5.3", jemalloc_manual},
      {"jemalloc", conf_variable, "retain", "false", false, "5.0", jemalloc_manual},
      {"jemalloc", conf_variable, "oversize_threshold", "0 1048576", false, "5.2", jemalloc_manual},
      {"mimalloc", "MIMALLOC_PURGE_DELAY", "", "0 100 1000 -1", true, "2.1", mimalloc_manual},
      {"mimalloc", "MIMALLOC_PURGE_DECOMMITS", "", "0", false, "2.1", mimalloc_manual},
      {"mimalloc", "MIMALLOC_ARENA_EAGER_COMMIT", "", "0 1", false, "2.1", mimalloc_manual},
      {"mimalloc", "MIMALLOC_ALLOW_LARGE_OS_PAGES", "", "1", false, "2.1", mimalloc_manual},
      {"mimalloc", "MIMALLOC_LARGE_OS_PAGES", "", "1", false, "1.0, until 2.0", mimalloc_manual},
      {"mimalloc", "MIMALLOC_EAGER_COMMIT", "", "0", false, "1.0", mimalloc_manual},
      {"mimalloc", "MIMALLOC_EAGER_COMMIT_DELAY", "", "0 4", false, "1.6", mimalloc_manual},
      {"mimalloc", "MIMALLOC_DECOMMIT_DELAY", "", "0 100 1000", true, "2.0, until 2.0", mimalloc_manual},
      {"mimalloc", "MIMALLOC_ALLOW_DECOMMIT", "", "0", false, "2.0, until 2.0", mimalloc_manual},
      {"mimalloc", "MIMALLOC_PAGE_RESET", "", "1", false, "1.0, until 2.0", mimalloc_manual},
      {"tcmalloc", "TCMALLOC_RELEASE_RATE", "", "0 10 100", false, "1.0", tcmalloc_manual},
      {"tcmalloc", "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES", "", "1048576 4194304 134217728", false, "1.0",
       tcmalloc_manual},
      {"tcmalloc", "TCMALLOC_AGGRESSIVE_DECOMMIT", "", "1", false, "2.1", tcmalloc_manual},
      {"tcmalloc", "TCMALLOC_TRANSFER_NUM_OBJ", "", "8 512", false, "2.3", tcmalloc_manual},
      {"tcmalloc", "TCMALLOC_SKIP_SBRK", "", "1", false, "1.0", tcmalloc_manual},
      {"tbb", "TBB_MALLOC_USE_HUGE_PAGES", "", "1", false, "4.1", tbb_manual},
      {"tbb", "TBB_MALLOC_SET_HUGE_SIZE_THRESHOLD", "", "1048576 67108864", false, "4.2", tbb_manual},
      {"scudo", "SCUDO_OPTIONS", "release_to_os_interval_ms", "-1 0 1000", true, "9", scudo_manual},
  };
  return all;
}

std::vector<std::string> Candidate::environment() const {
  std::vector<std::string> settings;
  for (const Choice& choice : choices) {
    const TunedSetting& row = row_of(choice);
    const std::string begin = std::string(row.variable) + "=";
    const auto same = std::find_if(settings.begin(), settings.end(),
                                   [&begin](const std::string& each) { return each.starts_with(begin); });
    if (same == settings.end())
      settings.push_back(begin + value_text(choice));
    else
      *same += list_variable(row.variable)->separator + value_text(choice);
  }
  return settings;
}

std::string Candidate::name() const {
  std::string text = allocator;
  for (const std::string& setting : environment()) text += "," + setting;
  return text;
}

std::string Candidate::title() const {
  std::string text = allocator;
  for (const Choice& choice : choices) text += " " + short_text(choice);
  return text;
}

bool Candidate::is_by_clock() const {
  return std::any_of(choices.begin(), choices.end(), [](const Choice& choice) { return row_of(choice).by_clock; });
}

std::vector<Candidate> single_choices(const std::string& allocator, const std::string& kind) {
  std::vector<Candidate> singles;
  for (std::size_t i = 0; i < tuned_settings().size(); ++i) {
    if (tuned_settings()[i].kind != kind) continue;
    for (const std::string& value : words_of(tuned_settings()[i].values))
      singles.push_back({.allocator = allocator, .choices = {{.setting = i, .value = value}}});
  }
  return singles;
}

bool can_join(const Candidate& a, const Candidate& b) {
  return a.allocator == b.allocator && std::none_of(a.choices.begin(), a.choices.end(), [&b](const Choice& one) {
           return std::any_of(b.choices.begin(), b.choices.end(),
                              [&one](const Choice& other) { return one.setting == other.setting; });
         });
}

Candidate joined(const Candidate& a, const Candidate& b) {
  assert(can_join(a, b));
  Candidate both = a;
  both.choices.insert(both.choices.end(), b.choices.begin(), b.choices.end());
  std::sort(both.choices.begin(), both.choices.end(),
            [](const Choice& one, const Choice& other) { return one.setting < other.setting; });
  return both;
}

SettingLines setting_lines(const std::string& preload, const std::vector<std::string>& environment,
                           const std::string& program) {
  std::vector<std::string> all;
  if (!preload.empty()) all.push_back("LD_PRELOAD=" + preload);
  all.insert(all.end(), environment.begin(), environment.end());
  if (all.empty()) return {};
  SettingLines lines{.env = "env", .systemd = "Environment=", .dockerfile = "ENV"};
  for (const std::string& setting : all) {
    const auto equals = setting.find('=');
    lines.env += " " + command::shell_word(setting);
    lines.systemd += (lines.systemd.ends_with('=') ? "" : " ") + quoted(setting, '%', '%');
    lines.dockerfile += " " + setting.substr(0, equals) + "=" + quoted(setting.substr(equals + 1), '$', '\\');
  }
  lines.env += " " + program;
  return lines;
}

}  // namespace cmt::replay
