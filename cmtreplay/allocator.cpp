// A name becomes an allocator only after it was tried: what LD_PRELOAD cannot load it leaves out with a warning, and
// what it loads need not have a malloc (libtbbmalloc.so.2 has scalable_malloc, the plain names are in its proxy).
// Either way the replay would measure glibc and call it by another name. So a worker is started with the library, says
// by dladdr where its calls come from, and that is compared with what was asked for.
//
// LD_PRELOAD takes several libraries, split at blanks and colons, and expands `$`. A path that holds one of these is
// reached through a symbolic link in a private folder.
#include "cmtreplay/allocator.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <system_error>
#include <utility>

#include "cmtreplay/shared_memory.h"

extern "C" {
#include "cmtreplay/calls.h"
}

namespace cmt::replay {
namespace {

namespace fs = std::filesystem;

/// Packaged allocators, by the names that people use, and the sonames that they come under.
const std::map<std::string, std::vector<std::string>>& short_names() {
  static const std::map<std::string, std::vector<std::string>> names{
      {"jemalloc", {"libjemalloc.so.2", "libjemalloc.so.1"}},
      {"tcmalloc", {"libtcmalloc_minimal.so.4", "libtcmalloc.so.4"}},
      {"mimalloc", {"libmimalloc.so.2.0", "libmimalloc.so.2", "libmimalloc.so.3"}},
      {"tbb", {"libtbbmalloc_proxy.so.2"}},
  };
  return names;
}

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

AllocatorFinder::~AllocatorFinder() {
  std::error_code ignored;
  if (!links_.empty()) fs::remove_all(links_, ignored);
}

Allocator AllocatorFinder::find(const std::string& name) {
  if (name == "null") return {.name = name, .null = true};
  if (name == "libc") return {.name = name, .library = probe("").origins["malloc"]};
  if (const auto known = short_names().find(name); known != short_names().end()) return find_short(name, known->second);
  const bool is_path = name.find('/') != name.npos || fs::is_regular_file(name);
  return find_library(name, is_path ? fs::absolute(name).string() : name);
}

Allocator AllocatorFinder::find_short(const std::string& name, const std::vector<std::string>& sonames) {
  for (const std::string& soname : sonames) {
    const Probe found = probe(soname);
    const auto loaded = [&soname](const std::string& object) { return same(object, soname); };
    if (std::any_of(found.objects.begin(), found.objects.end(), loaded)) return find_library(name, soname);
  }
  throw AllocatorError(name + ": not installed; the loader knows none of " + joined(sonames));
}

Allocator AllocatorFinder::find_library(const std::string& name, const std::string& library) {
  const std::string preload = preloadable(library);
  Probe found = probe(preload);
  if (found.ending.signal != 0) throw AllocatorError(name + ": ends a process that loads it: " + found.ending.text());
  if (found.ending.status != 0) throw AllocatorError(name + ": cannot be loaded: " + reason(found.words));
  const auto meant = [&library](const std::string& object) { return same(object, library); };
  if (std::none_of(found.objects.begin(), found.objects.end(), meant))
    throw AllocatorError(name + ": cannot be loaded: " + reason(found.words));
  const std::string& origin = found.origins["malloc"];
  if (!same(origin, library)) throw AllocatorError(name + ": has no malloc; it would be that of " + origin);
  return {.name = name, .library = origin, .preload = preload, .replaced = replaced(found)};
}

/// The calls that would reach libc although malloc does not.
std::uint32_t AllocatorFinder::replaced(const Probe& found) const {
  const std::string libc = probe("").origins["malloc"];
  std::uint32_t bits = 0;
  for (int i = 0; i < call_count; ++i) {
    if (found.origins.at(call_names[i]) == libc) bits |= std::uint32_t{1} << i;
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

AllocatorFinder::Probe AllocatorFinder::probe(const std::string& preload) const {
  const Fd output(memfd_create("probe-output", MFD_CLOEXEC));
  const Fd error(memfd_create("probe-error", MFD_CLOEXEC));
  Child child(
      {.command = {worker_, "--probe"}, .preload = preload, .output_fd = output.get(), .error_fd = error.get()});
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
