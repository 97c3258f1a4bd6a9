/// Finds the allocator that --alloc names, and tries it before it is measured.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "libcmt/text/utf8.h"
#include "toolkit/launch/spawn.h"

namespace cmt::replay {

/// An allocator that a worker can be started with.
struct Allocator {
  std::string name = {};                   ///< as the user gave it
  std::string library = {};                ///< the file its malloc comes from; empty for the null allocator
  std::string preload = {};                ///< for LD_PRELOAD; empty: nothing
  std::string prefix = {};                 ///< its calls are PREFIXmalloc and so on; empty: they have the plain names
  std::vector<std::string> settings = {};  ///< "NAME=VALUE" of its environment
  bool null = false;
  std::uint32_t replaced = 0;  ///< calls that it lacks, a bit each in the order of call_names
  /// Its messages that were printed, of all copies. A library repeats its complaint about a setting in every run.
  std::shared_ptr<std::set<std::string>> printed = std::make_shared<std::set<std::string>>();

  /// The name as part of a line: that of a file may have characters that a terminal obeys.
  std::string in_line() const { return text::to_line(name); }
};

/// The value of an --alloc: "jemalloc,MALLOC_CONF=background_thread:true" is a name and settings of its environment.
struct AllocatorName {
  std::string name = {};
  std::vector<std::string> settings = {};  ///< "NAME=VALUE" each
};

/// Takes such a value apart. A setting begins after a comma that a variable's name and `=` follow. So values and paths
/// may contain commas.
AllocatorName parse_allocator_name(std::string_view text);

/// The allocators that such a value names, separated by commas: "libc,jemalloc,MALLOC_CONF=narenas:1" is two. A comma
/// after a setting begins no name, and a file that exists is one name.
std::vector<std::string> split_allocator_names(const std::string& text);

/// The allocator's name as a part of a file's name. It is the last part of a path, and characters other than letters,
/// digits, dots, dashes and underlines are replaced by underlines.
std::string file_name_of(std::string_view allocator);

/// Sonames and paths that a packaged allocator with a short name may have, the likeliest first. Short names are
/// jemalloc, tcmalloc, mimalloc, tbb and scudo; any other name gives nothing. The loader does not find scudo: it is
/// packaged with compilers, under `root`/lib.
std::optional<std::vector<std::string>> packaged_files(const std::string& name, const std::string& root = "/usr");

/// Thrown for a name that leads to no allocator.
struct AllocatorError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The worker's executable: beside ours, or where it is installed. Throws AllocatorError.
std::string find_worker();

/// The command that starts a worker with an allocator preloaded.
launch::SpawnOptions worker_command(const std::string& worker, const std::string& argument, const Allocator& allocator);

/// The outputs of a command that has ended.
struct Captured {
  launch::Ended ended = {};
  std::string output = {}, error = {};
};

/// Runs a command without input and keeps its outputs. Returns nothing if it takes longer than that, and ends it.
/// Throws std::system_error.
std::optional<Captured> run_captured(launch::SpawnOptions command, unsigned timeout_seconds);

/// Finds allocators by name. A name is "null", "libc", the short name of a packaged allocator, a path, or a file of the
/// working directory. Any other name is a soname, which the loader searches as it does for any program. Settings of the
/// allocator's environment may follow the name. Each allocator is tried in a process of its own.
class AllocatorFinder {
 public:
  /// `prefix`: of libraries that have PREFIXmalloc the calls with this prefix are used. `timeout_seconds`: within which
  /// a process with the allocator has to start.
  AllocatorFinder(std::string worker, std::string prefix, unsigned timeout_seconds)
      : worker_(std::move(worker)), prefix_(std::move(prefix)), timeout_seconds_(timeout_seconds) {}
  ~AllocatorFinder();
  AllocatorFinder(const AllocatorFinder&) = delete;
  AllocatorFinder& operator=(const AllocatorFinder&) = delete;

  /// Throws AllocatorError. The result is valid while the finder lives.
  Allocator find(const std::string& name);

  /// The same of several names. The name "all" is replaced by installed(), without those named too.
  std::vector<Allocator> find_all(const std::vector<std::string>& names);

  /// The names of the C library's allocator and of the packaged ones that are installed here: "libc, jemalloc".
  std::vector<std::string> installed() const;
  std::string installed_text() const;

 private:
  /// The answer of a worker with a library preloaded.
  struct Probe {
    launch::Ended ending = {};
    std::map<std::string, std::string> origins = {};  ///< of each call: the file that it comes from
    std::vector<std::string> objects = {};            ///< all loaded files
    std::string messages = {};                        ///< on standard error

    std::string origin(const std::string& call) const {
      const auto found = origins.find(call);
      return found == origins.end() ? "" : found->second;
    }
  };

  const Probe& probe(const Allocator& allocator) const;
  Allocator find_packaged(const Allocator& allocator, const std::string& name, const std::vector<std::string>& files);
  Allocator find_library(Allocator allocator, const std::string& library);
  std::string file_of_malloc(Allocator allocator, const std::string& prefix) const;
  bool is_loaded(const std::string& file, Allocator allocator) const;
  std::string why_no_malloc(const Allocator& allocator, const Probe& found) const;
  std::string preload_path(const std::string& path);
  std::uint32_t missing_calls(const Probe& found, const Allocator& allocator) const;

  std::string worker_;
  std::string prefix_;
  unsigned timeout_seconds_;
  mutable std::map<std::vector<std::string>, Probe> probes_ = {};  ///< by words and environment
  std::filesystem::path links_;  ///< a private folder of symbolic links; empty: none was needed yet
};

}  // namespace cmt::replay
