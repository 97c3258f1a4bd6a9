/// Names for the frames of call stacks: from an address in a module of the recorded program to the functions there,
/// their files and lines.
///
///     cc1plus + 0x84e3f1    ->    vec<tree>::reserve (inlined)   vec.h:1520
///                                 cp_parser_declaration          parser.cc:14801
///
/// Modules are opened one after the other, each once, or ahead (modules_ahead.h). The build id says whether a file is
/// the recorded one.
#pragma once

#include <ctime>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cmt/header.h"
#include "cmt/stacks.h"

namespace cmt::symbols {

class ModulesAhead;

struct NamingOptions {
  /// Where separate debug files are, in .build-id/ or by their names.
  std::vector<std::string> debug_directories{"/usr/lib/debug"};
  /// The root folder of the recorded process, if it is not ours. Modules' files are opened below it, and symbolic links
  /// are followed within. Empty: ours.
  std::string root{};
  /// The list of functions that a JIT compiler in the recorded process has made; empty: none.
  std::string perf_map{};
  /// When the recording began: a module without a build id whose file is newer is taken for another one.
  std::optional<std::time_t> start{};
  /// Called with a line for each module whose frames cannot be named: it has changed since, is gone, or is damaged.
  /// Also called where libelf does not know the compression of the lines.
  std::function<void(const std::string&)> say{};
  /// Called often with the share of the frames that have been looked up, which rises to 1.
  std::function<void(double)> show{};
  /// Has opened modules, with these options; null: none.
  ModulesAhead* ahead = nullptr;
};

/// How many frames have been looked up, and what of them is known.
struct NamingCounts {
  std::size_t frames = 0;
  std::size_t with_function = 0;
  std::size_t with_line = 0;
};

/// Sets the names of those of the frames that have no function's. A function without a symbol is named by its module
/// and where it begins: "cc1plus+0x84e3f0". A frame that is in no function gets one empty name; one whose module could
/// not be read keeps what it has.
NamingCounts name_frames(StackTable& stacks, std::span<const FrameId> frames, const NamingOptions& options);

/// The same for all frames of a table.
NamingCounts name_all_frames(StackTable& stacks, const NamingOptions& options);

/// When the recording began, as its header says.
std::optional<std::time_t> start_of(const Header& header);

/// Where a JIT compiler in the recorded process lists its functions: "/tmp/perf-4711.map". Empty: the process is not
/// known, or the file is older than it.
std::string perf_map_of(const Header& header);

}  // namespace cmt::symbols
