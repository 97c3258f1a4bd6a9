/// trace2cmt --symbolise: names for the frames of a trace.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cmt/header.h"
#include "cmt/stacks.h"

namespace cmt::trace2cmt {

/// A copy of a table with names for the frames that have none, as they are found on this machine, below the root folder
/// `root` if that is not empty. It borrows texts of the table. `say` gets a line for each module that cannot be read,
/// and one that says how many names were found.
cmt::StackTable symbolised(const cmt::StackTable& stacks, const cmt::Header& header,
                           const std::vector<std::string>& debug_directories, const std::string& root,
                           const std::function<void(const std::string&)>& say);

}  // namespace cmt::trace2cmt
