// Starts a process with the settings and compares the values that the library then has with those that were asked for.
#include "cmtreplay/tune/understood.h"

#include <gnu/libc-version.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string_view>

#include "cmtreplay/run/machine.h"
#include "cmtreplay/tune/settings.h"
#include "toolkit/process/proc_file.h"

namespace cmt::replay {
namespace {

using Values = std::map<std::string, std::string>;

/// Values that ld.so accepts and glibc's malloc ignores: those above `most`, before glibc 2.`lifted`. From do_set_...
/// in malloc/malloc.c.
struct MallocLimit {
  std::string_view tunable;
  std::uint64_t most;
  int lifted;  ///< 0: never
};
constexpr std::array<MallocLimit, 4> malloc_limits{{{"glibc.malloc.mmap_threshold", std::uint64_t{32} << 20, 0},
                                                    {"glibc.malloc.mxfast", 20 * sizeof(std::size_t), 0},
                                                    {"glibc.malloc.tcache_count", 65535, 0},
                                                    {"glibc.malloc.tcache_max", 1032, 42}}};

/// Numeric properties of tcmalloc that show an environment variable's value.
constexpr std::array<std::pair<std::string_view, const char*>, 2> tcmalloc_properties{
    {{"TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES", "tcmalloc.max_total_thread_cache_bytes"},
     {"TCMALLOC_AGGRESSIVE_DECOMMIT", "tcmalloc.aggressive_memory_decommit"}}};

int glibc_minor() {
  int minor = 0;
  const std::string_view version = gnu_get_libc_version();
  const char* const dot = version.data() + version.find('.') + 1;
  std::from_chars(dot, version.data() + version.size(), minor);
  return minor;
}

std::string lowered(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  return text;
}

/// Values in one form: true and on are 1, false and off are 0, hexadecimal numbers are decimal.
std::string plain_value(const std::string& given) {
  const std::string value = lowered(given);
  if (value == "true" || value == "on" || value == "yes" || value == "t") return "1";
  if (value == "false" || value == "off" || value == "no" || value == "f") return "0";
  if (value.starts_with("0x")) return std::to_string(std::strtoull(value.c_str(), nullptr, 16));
  return value;
}

/// The program interpreter of this process, which is glibc's ld.so or musl's. Empty: there is none.
int find_interpreter(dl_phdr_info* object, std::size_t, void* path) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    if (object->dlpi_phdr[i].p_type == PT_INTERP)
      *static_cast<std::string*>(path) =
          reinterpret_cast<const char*>(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
  }
  return 1;  // the first object is the program
}

std::string interpreter_path() {
  std::string path;
  dl_iterate_phdr(find_interpreter, &path);
  return path;
}

/// Lines such as "glibc.malloc.arena_max: 0x1 (min: 0x1, max: 0xffffffffffffffff)".
Values tunables(const Allocator& allocator, unsigned timeout_seconds) {
  const std::string interpreter = interpreter_path();
  Values values;
  if (interpreter.empty()) return values;
  launch::SpawnOptions command = worker_command(interpreter, "--list-tunables", {.settings = allocator.settings});
  const auto captured = run_captured(command, timeout_seconds);
  if (!captured || captured->ended.status != 0) return values;
  std::istringstream lines(captured->output);
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(": "), end = line.find(" (");
    if (colon != line.npos && end != line.npos) values[line.substr(0, colon)] = line.substr(colon + 2, end - colon - 2);
  }
  return values;
}

/// Lines such as "mimalloc: option 'purge_delay': 10".
Values mimalloc_options(const std::string& worker, Allocator allocator, unsigned timeout_seconds) {
  allocator.settings.emplace_back("MIMALLOC_VERBOSE=1");
  Values values;
  const auto captured = run_captured(worker_command(worker, "--probe", allocator), timeout_seconds);
  if (!captured) return values;
  std::istringstream lines(captured->error);
  constexpr std::string_view begin = "mimalloc: option '";
  for (std::string line; std::getline(lines, line);) {
    const auto end = line.find("': ", begin.size());
    if (line.starts_with(begin) && end != line.npos)
      values[line.substr(begin.size(), end - begin.size())] = line.substr(end + 3, line.find(' ', end + 3) - end - 3);
  }
  return values;
}

/// The answers of a worker that is asked for these names.
Values worker_values(const std::string& worker, const Allocator& allocator, const std::vector<std::string>& names,
                     unsigned timeout_seconds) {
  launch::SpawnOptions command = worker_command(worker, "--ask", allocator);
  command.words.resize(2);  // without a prefix, which has no settings of its own
  command.words.insert(command.words.end(), names.begin(), names.end());
  Values values;
  const auto captured = run_captured(command, timeout_seconds);
  if (!captured) return values;
  std::istringstream lines(captured->output);
  for (std::string name, value; lines >> name && std::getline(lines >> std::ws, value);) values[name] = value;
  return values;
}

/// The tunable that an older variable of glibc sets: MALLOC_ARENA_MAX and MALLOC_TOP_PAD_. Empty: another variable.
std::string tunable_of(const std::string& variable) {
  constexpr std::array<std::string_view, 8> names{"ARENA_MAX", "ARENA_TEST",      "MMAP_MAX_", "MMAP_THRESHOLD_",
                                                  "TOP_PAD_",  "TRIM_THRESHOLD_", "PERTURB_",  "CHECK_"};
  if (!variable.starts_with("MALLOC_")) return "";
  std::string name = variable.substr(7);
  if (std::find(names.begin(), names.end(), name) == names.end()) return "";
  if (name.ends_with('_')) name.pop_back();
  return "glibc.malloc." + lowered(name);
}

SettingAnswer answer(const SettingPart& part, Understood understood, const std::string& reason = {}) {
  return {.setting = part.text, .understood = understood, .reason = reason};
}

SettingAnswer compared(const SettingPart& part, const std::string& found, const std::string& library) {
  if (plain_value(found) == plain_value(part.value)) return answer(part, Understood::yes);
  return answer(part, Understood::no, library + " takes " + found + " instead");
}

SettingAnswer ask_glibc(const SettingPart& part, const Values& values) {
  const std::string library = libc_name();
  if (values.empty()) return answer(part, Understood::unknown, "this C library does not list its tunables");
  const auto found = values.find(part.key);
  if (found == values.end()) return answer(part, Understood::no, library + " has no such tunable");
  for (const MallocLimit& limit : malloc_limits) {
    const bool is_lifted = limit.lifted != 0 && glibc_minor() >= limit.lifted;
    if (part.key == limit.tunable && !is_lifted && std::strtoull(part.value.c_str(), nullptr, 0) > limit.most)
      return answer(part, Understood::no, library + " ignores values above " + std::to_string(limit.most));
  }
  return compared(part, found->second, library);
}

SettingAnswer ask_jemalloc(const SettingPart& part, const Values& values) {
  const auto version = values.find("version");
  if (version == values.end()) return answer(part, Understood::unknown, "the library has no mallctl");
  const std::string library = "jemalloc " + version->second.substr(0, version->second.find('-'));
  const auto found = values.find("opt." + part.key);
  if (found == values.end()) return answer(part, Understood::no, library + " has no such option");
  return compared(part, found->second, library);
}

SettingAnswer ask_mimalloc(const SettingPart& part, const std::string& worker, Allocator allocator,
                           unsigned timeout_seconds) {
  allocator.settings = {part.text};
  const Values values = mimalloc_options(worker, allocator, timeout_seconds);
  if (values.empty()) return answer(part, Understood::unknown, "the library does not list its options");
  const std::string key = lowered(part.variable.substr(part.variable.find('_') + 1));
  if (const auto found = values.find(key); found != values.end()) return compared(part, found->second, "mimalloc");
  allocator.settings.clear();
  if (values != mimalloc_options(worker, allocator, timeout_seconds))
    return answer(part, Understood::yes);  // by an older name
  return answer(part, Understood::no, "this mimalloc has no such option");
}

/// Asks whether a library's file contains the name. A library reads no setting whose name it does not contain.
SettingAnswer by_name(const SettingPart& part, const std::string& name, const std::string& file) {
  if (file.find(name) != file.npos) return answer(part, Understood::yes);
  return answer(part, Understood::no, "the library's file does not contain this name");
}

/// A variable that no kind of allocator reads here. Its name may be misspelt, and a library may have a name of its own
/// for MALLOC_CONF.
SettingAnswer ask_by_name(const SettingPart& part, const std::string& kind, const std::string& library) {
  if (part.variable.find("MALLOC") == part.variable.npos)
    return answer(part, Understood::unknown, "no setting of malloc that is known here");
  if (kind == "libc" && !tunable_of(part.variable + "_").empty())
    return answer(part, Understood::no, "the variable of glibc is " + part.variable + "_");
  return by_name(part, part.variable,
                 process::read_file(kind == "libc" ? interpreter_path() : library) +
                     (kind == "libc" ? process::read_file(library) : ""));
}

SettingAnswer ask_tcmalloc(const SettingPart& part, const Values& values, const std::string& file) {
  for (const auto& [variable, property] : tcmalloc_properties) {
    const auto found = values.find(property);
    if (part.variable == variable && found != values.end()) return compared(part, found->second, "tcmalloc");
  }
  return by_name(part, part.variable, file);
}

/// The kind of allocator that reads a variable. Empty: not known.
std::string reader_of(const std::string& variable) {
  if (variable == "GLIBC_TUNABLES" || !tunable_of(variable).empty()) return "libc";
  if (variable == "MALLOC_CONF") return "jemalloc";
  if (variable.starts_with("MIMALLOC_")) return "mimalloc";
  if (variable.starts_with("TCMALLOC_")) return "tcmalloc";
  if (variable.starts_with("TBB_MALLOC_")) return "tbb";
  return variable == "SCUDO_OPTIONS" ? "scudo" : "";
}

/// The file that reads the settings. The proxy of tbb has the names of malloc only.
std::string settings_file(const Allocator& allocator) {
  constexpr std::string_view proxy = "_proxy";
  std::string file = allocator.library;
  if (const auto at = file.rfind(proxy); at != file.npos) file.erase(at, proxy.size());
  return file;
}

bool is_of_malloc(const SettingPart& part) {
  return part.variable != "GLIBC_TUNABLES" || part.key.starts_with("glibc.malloc.");
}

}  // namespace

std::vector<SettingPart> parts_of(const std::vector<std::string>& settings) {
  std::vector<SettingPart> parts;
  for (const std::string& setting : settings) {
    const std::string variable = setting.substr(0, setting.find('=')), value = setting.substr(variable.size() + 1);
    const ListVariable* const list = list_variable(variable);
    if (!list) {
      const std::string tunable = tunable_of(variable);
      parts.push_back(
          {.variable = variable, .key = tunable.empty() ? variable : tunable, .value = value, .text = setting});
      continue;
    }
    std::istringstream stream(value);
    for (std::string part; std::getline(stream, part, list->separator);) {
      const auto at = std::min(part.find(list->assignment), part.size());
      if (!part.empty())
        parts.push_back({.variable = variable,
                         .key = part.substr(0, at),
                         .value = at < part.size() ? part.substr(at + 1) : "",
                         .text = part});
    }
  }
  return parts;
}

std::string kind_of(const Allocator& allocator) {
  const std::string file = allocator.library.substr(allocator.library.rfind('/') + 1);
  if (file.starts_with("libc.so")) return "libc";
  for (const char* const kind : {"jemalloc", "mimalloc", "tcmalloc", "tbb", "scudo"}) {
    if (file.find(kind) != file.npos) return kind;
  }
  return "";
}

std::vector<SettingAnswer> ask_settings(const std::string& worker, const Allocator& allocator,
                                        unsigned timeout_seconds) {
  const std::vector<SettingPart> parts = parts_of(allocator.settings);
  const std::string kind = kind_of(allocator);
  std::vector<SettingAnswer> answers;
  if (parts.empty() || kind.empty()) return answers;
  Values values;
  std::string file;
  if (kind == "libc") values = tunables(allocator, timeout_seconds);
  if (kind == "jemalloc" || kind == "tcmalloc") {
    std::vector<std::string> names{"version"};
    for (const SettingPart& part : parts) names.push_back("opt." + part.key);
    for (const auto& [variable, property] : tcmalloc_properties) names.emplace_back(property);
    values = worker_values(worker, allocator, names, timeout_seconds);
  }
  if (kind == "tcmalloc" || kind == "tbb" || kind == "scudo") file = process::read_file(settings_file(allocator));
  for (const SettingPart& part : parts) {
    const std::string reader = reader_of(part.variable);
    if (!reader.empty() && reader != kind && is_of_malloc(part))
      answers.push_back(answer(part, Understood::no, "it is a setting of " + reader));
    else if (reader == "libc")
      answers.push_back(kind == "libc" ? ask_glibc(part, values) : answer(part, Understood::unknown, "not of malloc"));
    else if (reader == "jemalloc")
      answers.push_back(ask_jemalloc(part, values));
    else if (reader == "mimalloc")
      answers.push_back(ask_mimalloc(part, worker, allocator, timeout_seconds));
    else if (reader == "tcmalloc")
      answers.push_back(ask_tcmalloc(part, values, file));
    else if (reader == "tbb" || reader == "scudo")
      answers.push_back(by_name(part, part.key, file));
    else
      answers.push_back(ask_by_name(part, kind, settings_file(allocator)));
  }
  return answers;
}

std::vector<std::string> ignored_lines(const std::string& worker, const Allocator& allocator,
                                       unsigned timeout_seconds) {
  std::vector<std::string> lines;
  for (const SettingAnswer& answer : ask_settings(worker, allocator, timeout_seconds)) {
    if (answer.understood == Understood::no)
      lines.push_back(allocator.name + ": ignores " + answer.setting + ": " + answer.reason);
  }
  return lines;
}

}  // namespace cmt::replay
