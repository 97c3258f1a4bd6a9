/// trace2cmt --symbolise: names for the frames of a trace.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cmt/header.h"
#include "cmt/stacks.h"

namespace cmt::trace2cmt {

/// A copy of a table with names for the frames that have none. Looks for programs and libraries on this machine, below
/// the folder `root` if that is not empty. The copy borrows texts of the table. `say` gets a line for each module that
/// cannot be read, and a line with the number of names that were found.
cmt::StackTable symbolised(const cmt::StackTable& stacks, const cmt::Header& header,
                           const std::vector<std::string>& debug_directories, const std::string& root,
                           const std::function<void(const std::string&)>& say);

}  // namespace cmt::trace2cmt
