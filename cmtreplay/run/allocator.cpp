// Every allocator is tried before it is used, since in two cases the replay would measure glibc under another name:
//
// - LD_PRELOAD only warns about a library that it cannot load.
// - A library that it loads need not have a malloc. Example: libtbbmalloc.so.2 has scalable_malloc, and only its proxy
//   has the plain names.
//
// So a worker is started with the library. It reports where its calls come from (dladdr), and this is compared with the
// library asked for.
//
// LD_PRELOAD takes several libraries, separated by blanks and colons, and expands `$`. A path with one of these
// characters is preloaded through a symbolic link in a private folder.
#include "cmtreplay/run/allocator.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <boost/algorithm/string/join.hpp>
#include <cctype>
#include <cstring>
#include <sstream>
#include <system_error>
#include <utility>

#include "cmtreplay/plan/shared_memory.h"
#include "cmtreplay/protocol.h"
#include "toolkit/files/temporary_folder.h"
#include "toolkit/process/proc_mount.h"

namespace cmt::replay {
namespace {

namespace fs = std::filesystem;

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_name_character(char c) { return is_letter(c) || std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// Whether the text begins with "NAME=".
bool begins_setting(std::string_view text) {
  if (text.empty() || !is_letter(text[0])) return false;
  const auto end = std::find_if_not(text.begin(), text.end(), is_name_character);
  return end != text.end() && *end == '=';
}

/// The index of the next comma that a setting follows, or the end.
std::size_t next_setting(std::string_view text, std::size_t from) {
  for (auto comma = text.find(',', from); comma != text.npos; comma = text.find(',', comma + 1)) {
    if (begins_setting(text.substr(comma + 1))) return comma;
  }
  return text.size();
}

/// The files of scudo in ROOT/lib/llvm-N/lib/clang/V/lib/linux and ROOT/lib/clang/V/lib/TARGET, the newest first:
/// llvm-19 before llvm-9.
std::vector<std::string> scudo_files(const std::string& root) {
  utsname system{};
  uname(&system);
  const std::string machine = system.machine, name = "/libclang_rt.scudo_standalone";
  const std::string pattern =
      root + "/lib/{llvm-*/lib/,}clang/*/lib/{linux" + name + "-" + machine + ",*" + machine + "*" + name + "}.so";
  glob_t found{};
  glob(pattern.c_str(), GLOB_BRACE, nullptr, &found);
  std::vector<std::string> files(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  const auto is_newer = [](const std::string& a, const std::string& b) { return strverscmp(a.c_str(), b.c_str()) > 0; };
  std::sort(files.begin(), files.end(), is_newer);
  return files;
}

/// The reason in a message of ld.so, "ERROR: ld.so: object '...' ... (cannot open ...): ignored.", or else the first
/// line.
std::string reason(const std::string& messages) {
  const std::string line = messages.substr(0, messages.find('\n'));
  const auto open = line.rfind(" (");
  const auto close = line.rfind("): ignored");
  if (open != line.npos && close != line.npos && open < close) return line.substr(open + 2, close - open - 2);
  return line;
}

/// Whether a loaded file is the library asked for. Compares files if that is a path, and names if it is a soname.
bool is_same_library(const std::string& loaded, const std::string& library) {
  if (library.find('/') == library.npos) return fs::path(loaded).filename() == library;
  std::error_code error;
  return fs::equivalent(loaded, library, error);
}

}  // namespace

std::string find_worker() {
  const fs::path folder = process::own_program().parent_path();
  for (const fs::path& path : {folder / "cmtreplay-worker", folder / CMT_WORKER_FOLDER / "cmtreplay-worker"}) {
    if (access(path.c_str(), X_OK) == 0) return path.lexically_normal();
  }
  throw AllocatorError("cmtreplay-worker is neither in " + folder.string() + " nor in " +
                       (folder / CMT_WORKER_FOLDER).lexically_normal().string());
}

AllocatorName parse_allocator_name(std::string_view text) {
  std::size_t at = next_setting(text, 0);
  AllocatorName result{.name = std::string(text.substr(0, at))};
  while (at < text.size()) {
    const std::size_t end = next_setting(text, at + 1);
    result.settings.emplace_back(text.substr(at + 1, end - at - 1));
    at = end;
  }
  return result;
}

std::vector<std::string> split_allocator_names(const std::string& text) {
  const std::size_t settings = next_setting(text, 0);
  std::vector<std::string> names;
  std::size_t from = 0;
  if (!fs::exists(text.substr(0, settings))) {
    for (auto comma = text.find(','); comma < settings; comma = text.find(',', from)) {
      names.push_back(text.substr(from, comma - from));
      from = comma + 1;
    }
  }
  names.push_back(text.substr(from));
  return names;
}

std::string file_name_of(std::string_view allocator) {
  const AllocatorName parsed = parse_allocator_name(allocator);
  const auto slash = parsed.name.rfind('/');
  std::string name = slash == parsed.name.npos ? parsed.name : parsed.name.substr(slash + 1);
  for (const std::string& setting : parsed.settings) name += "_" + setting;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !is_name_character(c) && c != '.' && c != '-'; }, '_');
  return name;
}

std::optional<std::vector<std::string>> packaged_files(const std::string& name, const std::string& root) {
  // The names under which the loader finds packaged allocators.
  static const std::map<std::string, std::vector<std::string>> sonames{
      {"jemalloc", {"libjemalloc.so.2", "libjemalloc.so.1"}},
      {"tcmalloc", {"libtcmalloc_minimal.so.4", "libtcmalloc.so.4"}},
      {"mimalloc", {"libmimalloc.so.2.0", "libmimalloc.so.2", "libmimalloc.so.3"}},
      {"tbb", {"libtbbmalloc_proxy.so.2"}},
  };
  if (name == "scudo") return scudo_files(root);
  const auto known = sonames.find(name);
  return known == sonames.end() ? std::nullopt : std::optional(known->second);
}

launch::SpawnOptions worker_command(const std::string& worker, const std::string& argument,
                                    const Allocator& allocator) {
  launch::SpawnOptions options{
      .words = {worker, argument}, .environment = {{"LD_PRELOAD", allocator.preload}}, .has_own_group = true};
  for (const std::string& setting : allocator.settings) {
    const auto equals = setting.find('=');
    options.environment.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
  }
  if (!allocator.prefix.empty()) options.words.insert(options.words.end(), {allocator.prefix, allocator.library});
  return options;
}

std::optional<Captured> run_captured(launch::SpawnOptions command, unsigned timeout_seconds) {
  const Fd output(memfd_create("captured-output", MFD_CLOEXEC));
  const Fd error(memfd_create("captured-error", MFD_CLOEXEC));
  const Fd no_input(open("/dev/null", O_RDONLY | O_CLOEXEC));
  command.input_fd = no_input.get();
  command.output_fd = output.get();
  command.error_fd = error.get();
  launch::ChildProcess child(command);
  if (!child.ends_within(timeout_seconds)) return std::nullopt;
  Captured captured{.ended = child.wait()};
  std::string buffer;
  captured.output = process::read_again(output.get(), buffer);
  captured.error = process::read_again(error.get(), buffer);
  return captured;
}

AllocatorFinder::~AllocatorFinder() {
  std::error_code ignored;
  if (!links_.empty()) fs::remove_all(links_, ignored);
}

Allocator AllocatorFinder::find(const std::string& text) {
  AllocatorName asked = parse_allocator_name(text);
  if (fs::is_regular_file(text)) asked = {.name = text};
  const std::string& name = asked.name;
  if (name == "null") return {.name = text, .null = true};
  Allocator allocator{.name = text, .settings = asked.settings};
  if (name == "libc") {
    allocator.library = probe(allocator).origin("malloc");
    return allocator;
  }
  if (const auto files = packaged_files(name)) return find_packaged(allocator, name, *files);
  const bool is_path = name.find('/') != name.npos || fs::is_regular_file(name);
  return find_library(allocator, is_path ? fs::absolute(name).string() : name);
}

Allocator AllocatorFinder::find_packaged(const Allocator& allocator, const std::string& name,
                                         const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    if (is_loaded(file, allocator)) return find_library(allocator, file);
  }
  if (files.empty()) throw AllocatorError(name + ": not installed; no compiler here brings it along");
  throw AllocatorError(name + ": not installed; the loader knows none of " + boost::algorithm::join(files, ", "));
}

/// Whether a file can be preloaded.
bool AllocatorFinder::is_loaded(const std::string& file, Allocator allocator) const {
  allocator.preload = file;
  const Probe& found = probe(allocator);
  const auto is_file = [&file](const std::string& object) { return is_same_library(object, file); };
  return std::any_of(found.objects.begin(), found.objects.end(), is_file);
}

std::vector<std::string> AllocatorFinder::installed() const {
  std::vector<std::string> names{"libc"};
  for (const char* const name : {"jemalloc", "tcmalloc", "mimalloc", "tbb", "scudo"}) {
    const std::vector<std::string> files = packaged_files(name).value();
    const auto is_there = [this](const std::string& file) { return is_loaded(file, {}); };
    if (std::any_of(files.begin(), files.end(), is_there)) names.emplace_back(name);
  }
  return names;
}

std::string AllocatorFinder::installed_text() const { return boost::algorithm::join(installed(), ", "); }

std::vector<Allocator> AllocatorFinder::find_all(const std::vector<std::string>& names) {
  std::vector<Allocator> allocators;
  for (const std::string& name : names) {
    if (name != "all") {
      allocators.push_back(find(name));
      continue;
    }
    for (const std::string& each : installed()) {
      const auto is_there = [&each](const Allocator& allocator) { return allocator.name == each; };
      if (std::count(names.begin(), names.end(), each) == 0 &&
          std::none_of(allocators.begin(), allocators.end(), is_there))
        allocators.push_back(find(each));
    }
  }
  const auto has_prefix = [](const Allocator& allocator) { return !allocator.prefix.empty(); };
  if (!prefix_.empty() && std::none_of(allocators.begin(), allocators.end(), has_prefix))
    throw AllocatorError("--prefix=" + prefix_ + ": " + boost::algorithm::join(names, ", ") +
                         (names.size() == 1 ? " has no " : " have no ") + prefix_ + "malloc");
  return allocators;
}

Allocator AllocatorFinder::find_library(Allocator allocator, const std::string& library) {
  const std::string& name = allocator.name;
  allocator.preload = preload_path(library);
  const Probe* found = &probe(allocator);
  constexpr int status_of_loader = 127;  // of a process whose libraries the loader cannot load
  const bool is_loaders = found->ending.status == status_of_loader && !found->messages.empty();
  if (found->ending.signal != 0 || (found->objects.empty() && !is_loaders))
    throw AllocatorError(name + ": ends a process that loads it: " + ending_text(found->ending));
  if (found->ending.status != 0) throw AllocatorError(name + ": cannot be loaded: " + reason(found->messages));
  const auto is_library = [&library](const std::string& object) { return is_same_library(object, library); };
  const auto object = std::find_if(found->objects.begin(), found->objects.end(), is_library);
  if (object == found->objects.end()) {
    const bool is_path = library.find('/') != library.npos;
    throw AllocatorError(name + ": cannot be loaded: " + reason(found->messages) +
                         (is_path ? "" : "; known by name and installed: null, " + installed_text()));
  }
  allocator.library = allocator.preload == library ? *object : library;  // the loader knows the link of preload_path()
  if (const std::string file = prefix_.empty() ? "" : file_of_malloc(allocator, prefix_); !file.empty()) {
    allocator.prefix = prefix_;
    if (!is_same_library(file, allocator.library)) allocator.library = file;
    found = &probe(allocator);
  }
  if (!is_same_library(found->origin("malloc"), allocator.prefix.empty() ? library : allocator.library))
    throw AllocatorError(name + ": " + why_no_malloc(allocator, *found));
  allocator.replaced = missing_calls(*found, allocator);
  return allocator;
}

/// The file with PREFIXmalloc: the library or one of its dependencies, in the order of dlsym(3). The C library, which
/// all depend on, does not count: its names have prefixes too, as __libc_malloc has. Returns "" if there is none.
std::string AllocatorFinder::file_of_malloc(Allocator allocator, const std::string& prefix) const {
  allocator.prefix = prefix;
  const std::string file = probe(allocator).origin("malloc");
  return file == probe({}).origin("malloc") ? "" : file;
}

/// The message for a library without a malloc of its own, with a prefix that would do.
std::string AllocatorFinder::why_no_malloc(const Allocator& allocator, const Probe& found) const {
  const std::string words = "has no malloc; it would be that of " + found.origin("malloc");
  if (!prefix_.empty()) return "has no malloc and no " + prefix_ + "malloc";
  for (const char* prefix : {"scalable_", "je_", "mi_", "tc_"}) {
    const std::string file = file_of_malloc(allocator, prefix);
    if (file.empty()) continue;
    const std::string whose =
        is_same_library(file, allocator.library) ? "it has " : "it needs " + file + ", which has ";
    return words + "; " + whose + prefix + "malloc: --prefix=" + prefix;
  }
  return words;
}

/// The calls that the library lacks: they would reach libc although malloc does not, or do not exist under the prefix.
std::uint32_t AllocatorFinder::missing_calls(const Probe& found, const Allocator& allocator) const {
  const std::string libc = probe({}).origin("malloc");
  const bool is_libc = is_same_library(libc, allocator.library);
  std::uint32_t bits = 0;
  for (int i = 0; i < call_count; ++i) {
    const std::string origin = found.origin(call_names[i]);
    const bool lacks = allocator.prefix.empty() ? origin == libc && !is_libc : origin.empty();
    if (lacks) bits |= std::uint32_t{1} << i;
  }
  return bits;
}

std::string AllocatorFinder::preload_path(const std::string& path) {
  if (path.find_first_of(" :$\t\n") == path.npos) return path;
  if (links_.empty()) links_ = files::make_temporary_folder("cmtreplay-");
  const auto links = std::distance(fs::directory_iterator(links_), fs::directory_iterator());
  const fs::path link = links_ / ("allocator" + std::to_string(links) + ".so");
  fs::create_symlink(path, link);
  return link;
}

const AllocatorFinder::Probe& AllocatorFinder::probe(const Allocator& allocator) const {
  const launch::SpawnOptions command = worker_command(worker_, "--probe", allocator);
  std::vector<std::string> key = command.words;
  for (const auto& [name, value] : command.environment) key.insert(key.end(), {name, value});
  const auto known = probes_.find(key);
  if (known != probes_.end()) return known->second;
  const auto captured = run_captured(command, timeout_seconds_);
  if (!captured)
    throw AllocatorError(allocator.name + ": a process that loads it has not started for " +
                         std::to_string(timeout_seconds_) + " s");
  Probe probe{.ending = captured->ended, .messages = captured->error};
  std::istringstream lines{captured->output};
  for (std::string line; std::getline(lines, line);) {
    const auto blank = line.find(' ');
    const std::string word = line.substr(0, blank);
    const std::string path = line.substr(blank + 1);
    if (word == "object")
      probe.objects.push_back(path);
    else
      probe.origins[word] = path;
  }
  return probes_.emplace(std::move(key), std::move(probe)).first->second;
}

}  // namespace cmt::replay
