#pragma once

// What the tests of formats share: a log's lines in, what was found in them out.

#include <string>
#include <string_view>
#include <vector>

#include "cmt/text.h"
#include "trace2cmt/formats/format.h"

namespace trace2cmt::fixture {

/// The events of a log, as lines without tags; "? what was expected" for a line that is wrong.
inline std::vector<std::string> found_in(const LogFormat& format, std::string_view log, Findings found = Findings()) {
  std::vector<std::string> all;
  const auto parser = format.make_parser();
  const auto keep = [&] {
    if (!found.expected().empty()) all.push_back("? " + std::string(found.expected()));
    for (const cmt::Event& event : found.events()) all.push_back(cmt::to_line(event));
    found.next_line();
  };
  while (!log.empty()) {
    const std::size_t length = std::min(log.find('\n'), log.size());
    parser->parse(log.substr(0, length), found);
    log.remove_prefix(std::min(length + 1, log.size()));
    keep();
  }
  parser->end(found);
  keep();
  return all;
}

using Lines = std::vector<std::string>;

}  // namespace trace2cmt::fixture
