// A name becomes an allocator only after it was tried: what LD_PRELOAD cannot load it leaves out with a warning, and
// what it loads need not have a malloc (libtbbmalloc.so.2 has scalable_malloc, the plain names are in its proxy).
// Either way the replay would measure glibc and call it by another name. So a worker is started with the library, says
// by dladdr where its calls come from, and that is compared with what was asked for.
//
// LD_PRELOAD takes several libraries, split at blanks and colons, and expands `$`. A path that holds one of these is
// reached through a symbolic link in a private folder.
#include "cmtreplay/run/allocator.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <system_error>
#include <utility>

#include "cmtreplay/plan/shared_memory.h"
#include "cmtreplay/protocol.h"
#include "cmtreplay/run/allocator_name.h"

namespace cmt::replay {
namespace {

namespace fs = std::filesystem;

std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> part;
  lseek(fd, 0, SEEK_SET);
  for (ssize_t got; (got = read(fd, part.data(), part.size())) > 0;) text.append(part.data(), got);
  return text;
}

/// "cannot open shared object file" out of ld.so's "ERROR: ld.so: object '...' ... (cannot ...): ignored.", or else the
/// first line.
std::string reason(const std::string& words) {
  const std::string line = words.substr(0, words.find('\n'));
  const auto open = line.rfind(" (");
  const auto close = line.rfind("): ignored");
  if (open != line.npos && close != line.npos && open < close) return line.substr(open + 2, close - open - 2);
  return line;
}

/// Whether a loaded file is the one that was meant: by file for a path, by name for a soname.
bool same(const std::string& loaded, const std::string& library) {
  if (library.find('/') == library.npos) return fs::path(loaded).filename() == library;
  std::error_code error;
  return fs::equivalent(loaded, library, error);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

std::string find_worker() {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& path : {folder / "cmtreplay-worker", folder / CMT_WORKER_FOLDER / "cmtreplay-worker"}) {
    if (access(path.c_str(), X_OK) == 0) return path.lexically_normal();
  }
  throw AllocatorError("cmtreplay-worker is neither in " + folder.string() + " nor in " +
                       (folder / CMT_WORKER_FOLDER).lexically_normal().string());
}

Launch launch_of(const std::string& worker, const std::string& argument, const Allocator& allocator) {
  Launch launch{.command = {worker, argument}, .preload = allocator.preload, .settings = allocator.settings};
  if (allocator.prefix.empty()) return launch;
  launch.command.push_back(allocator.prefix);
  launch.command.push_back(allocator.library);
  return launch;
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
    allocator.library = probe(allocator).origins["malloc"];
    return allocator;
  }
  if (is_short_name(name)) return find_packaged(allocator, name);
  const bool is_path = name.find('/') != name.npos || fs::is_regular_file(name);
  return find_library(allocator, is_path ? fs::absolute(name).string() : name);
}

Allocator AllocatorFinder::find_packaged(const Allocator& allocator, const std::string& name) {
  const std::vector<std::string> files = packaged_files(name);
  for (const std::string& file : files) {
    Allocator tried = allocator;
    tried.preload = file;
    const Probe found = probe(tried);
    const auto loaded = [&file](const std::string& object) { return same(object, file); };
    if (std::any_of(found.objects.begin(), found.objects.end(), loaded)) return find_library(allocator, file);
  }
  if (files.empty()) throw AllocatorError(name + ": not installed; no compiler here brings it along");
  throw AllocatorError(name + ": not installed; the loader knows none of " + joined(files));
}

Allocator AllocatorFinder::find_library(Allocator allocator, const std::string& library) {
  const std::string& name = allocator.name;
  allocator.preload = preloadable(library);
  Probe found = probe(allocator);
  if (found.ending.signal != 0) throw AllocatorError(name + ": ends a process that loads it: " + found.ending.text());
  if (found.ending.status != 0) throw AllocatorError(name + ": cannot be loaded: " + reason(found.words));
  const auto meant = [&library](const std::string& object) { return same(object, library); };
  const auto object = std::find_if(found.objects.begin(), found.objects.end(), meant);
  if (object == found.objects.end()) throw AllocatorError(name + ": cannot be loaded: " + reason(found.words));
  allocator.library = *object;
  if (!prefix_.empty() && has_malloc(allocator, prefix_)) {
    allocator.prefix = prefix_;
    found = probe(allocator);
  }
  if (!same(found.origins["malloc"], library)) throw AllocatorError(name + ": " + what_it_has(allocator, found));
  allocator.replaced = replaced(found, allocator);
  return allocator;
}

bool AllocatorFinder::has_malloc(Allocator allocator, const std::string& prefix) const {
  allocator.prefix = prefix;
  return same(probe(allocator).origins["malloc"], allocator.library);
}

/// Why a library cannot be used that has no malloc of its own.
std::string AllocatorFinder::what_it_has(const Allocator& allocator, Probe& found) const {
  const std::string words = "has no malloc; it would be that of " + found.origins["malloc"];
  if (!prefix_.empty()) return "has no malloc and no " + prefix_ + "malloc";
  for (const char* prefix : {"scalable_", "je_", "mi_", "tc_"}) {
    if (has_malloc(allocator, prefix)) return words + "; it has " + prefix + "malloc: --prefix=" + prefix;
  }
  return words;
}

/// The calls that would reach libc although malloc does not, or that are not there under a prefix.
std::uint32_t AllocatorFinder::replaced(Probe& found, const Allocator& allocator) const {
  const std::string libc = probe({}).origins["malloc"];
  std::uint32_t bits = 0;
  for (int i = 0; i < call_count; ++i) {
    const std::string& origin = found.origins[call_names[i]];
    const bool lacks = allocator.prefix.empty() ? origin == libc : origin.empty();
    if (lacks) bits |= std::uint32_t{1} << i;
  }
  return bits;
}

std::string AllocatorFinder::preloadable(const std::string& path) {
  if (path.find_first_of(" :$\t\n") == path.npos) return path;
  if (links_.empty()) {
    std::string folder = (fs::temp_directory_path() / "cmtreplay-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) throw std::system_error(errno, std::generic_category(), folder);
    links_ = folder;
  }
  const auto links = std::distance(fs::directory_iterator(links_), fs::directory_iterator());
  const fs::path link = links_ / ("allocator" + std::to_string(links) + ".so");
  fs::create_symlink(path, link);
  return link;
}

AllocatorFinder::Probe AllocatorFinder::probe(const Allocator& allocator) const {
  const Fd output(memfd_create("probe-output", MFD_CLOEXEC));
  const Fd error(memfd_create("probe-error", MFD_CLOEXEC));
  Launch launch = launch_of(worker_, "--probe", allocator);
  launch.output_fd = output.get();
  launch.error_fd = error.get();
  Child child(launch);
  Probe probe{.ending = child.wait(), .words = read_all(error.get())};
  std::istringstream lines(read_all(output.get()));
  for (std::string line; std::getline(lines, line);) {
    const auto blank = line.find(' ');
    const std::string word = line.substr(0, blank);
    const std::string path = line.substr(blank + 1);
    if (word == "object")
      probe.objects.push_back(path);
    else
      probe.origins[word] = path;
  }
  return probe;
}

}  // namespace cmt::replay
