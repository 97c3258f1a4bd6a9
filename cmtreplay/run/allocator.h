#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cmtreplay/run/child.h"

namespace cmt::replay {

/// An allocator, ready to be put under a worker.
struct Allocator {
  std::string name = {};                   ///< as the user gave it
  std::string library = {};                ///< the file its malloc comes from; empty for the null allocator
  std::string preload = {};                ///< what LD_PRELOAD has to say; empty: nothing
  std::string prefix = {};                 ///< its calls are PREFIXmalloc and so on; empty: they have the plain names
  std::vector<std::string> settings = {};  ///< "NAME=VALUE" of its environment
  bool null = false;
  std::uint32_t replaced = 0;  ///< calls that it lacks, a bit each in the order of call_names (calls.h)
};

/// A name that does not lead to an allocator.
struct AllocatorError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The worker's own executable: beside ours, or where it is installed. Throws AllocatorError.
std::string find_worker();

/// How a worker is started for an allocator.
Launch launch_of(const std::string& worker, const std::string& argument, const Allocator& allocator);

/// Finds allocators by name. "null"; "libc"; a short name of a packaged one; a path, or a file of the working
/// directory; else a soname, which the loader looks for as it does for any program. Settings of its environment may
/// follow. Each is tried in a process of its own.
class AllocatorFinder {
 public:
  /// `prefix`: libraries that have PREFIXmalloc are called by the names that begin so.
  explicit AllocatorFinder(std::string worker, std::string prefix = {})
      : worker_(std::move(worker)), prefix_(std::move(prefix)) {}
  ~AllocatorFinder();
  AllocatorFinder(const AllocatorFinder&) = delete;
  AllocatorFinder& operator=(const AllocatorFinder&) = delete;

  /// Throws AllocatorError, which says the name and what is wrong. What it returns is valid while the finder lives.
  Allocator find(const std::string& name);

 private:
  /// What a worker says of itself with something preloaded.
  struct Probe {
    Ending ending = {};
    std::map<std::string, std::string> origins = {};  ///< of each call: the file it comes from
    std::vector<std::string> objects = {};            ///< all that is loaded
    std::string words = {};                           ///< on standard error
  };

  Probe probe(const Allocator& allocator) const;
  Allocator find_packaged(const Allocator& allocator, const std::string& name);
  Allocator find_library(Allocator allocator, const std::string& library);
  bool has_malloc(Allocator allocator, const std::string& prefix) const;
  std::string what_it_has(const Allocator& allocator, Probe& found) const;
  std::string preloadable(const std::string& path);
  std::uint32_t replaced(Probe& found, const Allocator& allocator) const;

  std::string worker_;
  std::string prefix_;
  std::filesystem::path links_;  ///< a private folder of symbolic links; empty: none was needed yet
};

}  // namespace cmt::replay
