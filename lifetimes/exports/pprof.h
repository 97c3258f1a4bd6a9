/// Writes the stacks of a trace as a profile for pprof.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/fates/use.h"
#include "analysis/stacks/labels.h"
#include "cmt/header.h"
#include "cmt/stacks.h"

namespace cmt::lifetimes {

/// Calls `write` with pieces of a profile in the form of profile.proto, which pprof reads, not compressed yet. It has a
/// sample for each stack, with these values:
///
///     alloc_objects, alloc_space        allocated
///     inuse_objects, inuse_space        live at the end
///     peak_objects, peak_space          live at the peak of live bytes
///     temporary_objects                 freed by the next event of their thread
///
/// Viewers show the values at the peak by default. The sums over all samples are the totals of `uses`. A stack
/// ends at the function that `charges` charges. Functions that match `hidden`, an extended regular expression, are left
/// out. `header` is the trace's; the viewer shows `comments`.
/// Memory: the functions' names, and 8 bytes a frame.
void write_pprof(const StackTable& stacks, const analysis::Uses& uses, const analysis::ChargeRule& charges,
                 const std::string& hidden, const Header& header, const std::vector<std::string>& comments,
                 const std::function<void(std::string_view)>& write);

}  // namespace cmt::lifetimes
