/// Returns the stacks of a trace with the names of their functions.
#pragma once

#include <string>
#include <vector>

#include "cmt/header.h"
#include "cmt/stacks.h"
#include "toolkit/symbols/name_frames.h"

namespace cmt::analysis {

/// Where names are looked up, and the tool that reports what is not found.
struct NamedStacksOptions {
  std::string tool;                              ///< begins each message on standard error
  std::vector<std::string> debug_directories{};  ///< searched before the system's
  symbols::ModulesAhead* ahead = nullptr;  ///< modules that are open already, by naming_options() of the same options
};

symbols::NamingOptions naming_options(const Header& header, const NamedStacksOptions& options);

/// Returns the stacks of a trace with the names of these frames (StackTree::frames()). The copy borrows the texts of
/// `stacks`.
StackTable named_stacks(const StackTable& stacks, const std::vector<FrameId>& frames, const Header& header,
                        const NamedStacksOptions& options);

/// Returns the same without nodes: frames and modules only, with their numbers. (The nodes of a large program take
/// 10 MB.)
StackTable named_frames(const StackTable& stacks, const std::vector<FrameId>& frames, const Header& header,
                        const NamedStacksOptions& options);

/// Throws FormatError if a trace that was read has no stacks. (The header of a text or an unfinished trace covers only
/// the first events.)
void require_stacks(const StackTable& stacks, const Header& header, const std::string& path);

}  // namespace cmt::analysis
