/// Parses the lines of a foreign log in a unit test, and returns the events as text.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "cmt/text.h"
#include "toolkit/logs/log_format.h"

namespace cmt::fixture {

using Lines = std::vector<std::string>;

/// The events of a log, as lines without tags; "? EXPECTED" for a line that is rejected.
inline Lines lines_of(std::string_view format, std::string_view text, logs::ParsedLog log = logs::ParsedLog()) {
  Lines all;
  REQUIRE(logs::find_log_format(format) != nullptr);
  const auto parser = logs::find_log_format(format)->make_parser();
  const auto keep = [&] {
    if (!log.expected().empty()) all.push_back("? " + std::string(log.expected()));
    for (const cmt::Event& event : log.events()) all.push_back(cmt::to_line(event));
    log.next_line();
  };
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    parser->parse(text.substr(0, length), log);
    text.remove_prefix(std::min(length + 1, text.size()));
    keep();
  }
  parser->end(log);
  keep();
  return all;
}

}  // namespace cmt::fixture
