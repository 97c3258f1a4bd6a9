/// The command-line options of --by, which lifetimes and overhead share.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "analysis/groups/group.h"
#include "toolkit/command/command_line.h"

namespace cmt::analysis {

/// Returns the tool's own options with --by, --sort, --inclusive, --skip, --raw, --native, --focus, --ignore, --hide,
/// --min, --top and --debug-dir.
std::vector<command::Option> group_options(std::vector<command::Option> own);

By parse_by_option(const command::CommandLine& line);
/// Returns the value of an option that is an extended regular expression; of several values, an expression that matches
/// what one of them matches. Throws UsageError for a bad expression.
std::string pattern_option(const command::CommandLine& line, const char* option);
/// Returns the values of --skip and --raw. Throws UsageError.
ChargeRule charge_options(const command::CommandLine& line);
/// Returns the value of --native. Throws UsageError.
NativeFrames native_option(const command::CommandLine& line);
/// Returns the value of --min as a share of 1. Throws UsageError.
double parse_min_option(const command::CommandLine& line, By by);
std::size_t parse_top_option(const command::CommandLine& line);

/// Throws UsageError if one of the options is given, since it needs `needed`.
void refuse_without(const command::CommandLine& line, std::initializer_list<const char*> options,
                    const std::string& needed);

/// Returns all options but the metric. Throws UsageError.
template <class Figures>
GroupOptions<Figures> parse_group_options(const command::CommandLine& line) {
  GroupOptions<Figures> options;
  options.by = parse_by_option(line);
  options.inclusive = line.has("inclusive");
  options.charges = charge_options(line);
  options.native = native_option(line);
  options.focus = pattern_option(line, "focus");
  options.ignored = pattern_option(line, "ignore");
  options.hidden = pattern_option(line, "hide");
  options.min = parse_min_option(line, options.by);
  options.top = parse_top_option(line);
  return options;
}

}  // namespace cmt::analysis
