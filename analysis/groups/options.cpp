// Parses the options of --by that lifetimes and overhead share.
#include "analysis/groups/options.h"

#include <charconv>
#include <stdexcept>
#include <string_view>

#include "analysis/stacks/contributors.h"

namespace cmt::analysis {
namespace {

/// "2.5%" or "2.5": a share of 1.
std::optional<double> parse_share(const std::string& text) {
  double percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc() || (!rest.empty() && rest != "%") || !(percent >= 0 && percent <= 100)) return std::nullopt;
  return percent / 100;
}

}  // namespace

std::vector<command::Option> group_options(std::vector<command::Option> own) {
  using Takes = command::Option::Takes;
  for (const char* const name : {"by", "sort", "focus", "ignore", "hide", "native", "min", "top"})
    own.push_back({name, Takes::value});
  own.push_back({"inclusive"});
  own.push_back({"raw"});
  for (const char* const name : {"skip", "debug-dir"}) own.push_back({name, Takes::values});
  return own;
}

std::string pattern_option(const command::CommandLine& line, const char* option) {
  std::string either;
  for (const std::string& expression : line.values(option)) {
    try {
      NamePattern pattern(expression);
    } catch (const std::invalid_argument& error) {
      throw command::UsageError("--" + std::string(option) + ": " + error.what());
    }
    if (!either.empty() && !expression.empty()) either += NamePattern::separator;
    either += expression;
  }
  return either;
}

ChargeRule charge_options(const command::CommandLine& line) {
  return {.skipped = pattern_option(line, "skip"), .raw = line.has("raw")};
}

NativeFrames native_option(const command::CommandLine& line) {
  return line.parsed("native", "fold", "all, fold or none", parse_native);
}

By parse_by_option(const command::CommandLine& line) {
  const By by = line.parsed("by", "function", "function, caller, line, library, thread, size or phase", parse_by);
  if (is_of_stacks(by)) return by;
  for (const char* const option : {"inclusive", "skip", "raw", "native", "focus", "ignore", "hide", "debug-dir"}) {
    if (line.has(option))
      throw command::UsageError(std::string("--") + option +
                                " is about call stacks: not with --by=" + std::string(name(by)));
  }
  return by;
}

double parse_min_option(const command::CommandLine& line, By by) {
  return line.parsed("min", by == By::caller ? "1%" : "0", "a share, as 2.5%", parse_share);
}

std::size_t parse_top_option(const command::CommandLine& line) {
  const bool is_text = !line.has("json") && !line.has("csv");
  return line.number("top", is_text ? 20 : 0, 0, 1'000'000'000);
}

void refuse_without(const command::CommandLine& line, std::initializer_list<const char*> options,
                    const std::string& needed) {
  for (const char* const option : options) {
    if (line.has(option)) throw command::UsageError(std::string("--") + option + " needs " + needed);
  }
}

}  // namespace cmt::analysis
