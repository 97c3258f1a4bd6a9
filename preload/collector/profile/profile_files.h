/// The profiles that a collector writes for pprof, and their files.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "cmt/stacks.h"
#include "preload/collector/drain/start_facts.h"
#include "preload/collector/profile/stack_profile.h"
#include "preload/protocol.h"

namespace cmt::collector {

/// Calls `write` with pieces of a profile in the form of profile.proto: `ns` after the start, with the types
/// alloc_objects, alloc_space, inuse_objects and inuse_space. Frames of interpreters have names; is_call_of_init()
/// frames are left out. All but 16,384 stacks are joined in one sample.
void write_profile(const StackProfile& profile, const StackTable& stacks, const StartFacts& facts,
                   std::uint64_t samples_lost, std::uint64_t ns, std::uint64_t events_lost,
                   const std::function<void(std::string_view)>& write);

/// The files of one recording: app.7.0001.pb.gz and so on while it goes on, and app.7.pb.gz at its end. A number is
/// above all that such files in the folder have: those of an earlier process stay for a while.
class ProfileFiles {
 public:
  using Content = std::function<void(const std::function<void(std::string_view)>&)>;

  /// `most`: how many numbered files are kept.
  ProfileFiles(std::string path, std::uint64_t most);

  /// Writes a file, which has its name with ".part" until it is whole. Throws OutputError, and leaves nothing then.
  void write_numbered(const Content& content);
  void write_last(const Content& content) const;

 private:
  std::string path(std::uint64_t number, int digits) const;

  std::string begin_, ending_;
  const std::uint64_t most_;
  std::deque<std::uint64_t> numbers_;  // of the files, rising
};

}  // namespace cmt::collector
