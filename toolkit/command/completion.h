#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "toolkit/command/command_line.h"

namespace cmt::command {

/// The script with which a shell completes a tool's command line, or those of its subcommands: options, the words that
/// an option can be, files and folders. Throws UsageError for a shell that is not bash, zsh or fish.
/// `subcommands` are tools by the names "TOOL WORD".
std::string completion_script(std::string_view shell, const Tool& tool, const std::vector<Tool>& subcommands = {});

}  // namespace cmt::command
