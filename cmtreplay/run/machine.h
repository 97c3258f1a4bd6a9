#pragma once

#include <optional>
#include <string>

#include "toolkit/output/fields.h"

namespace cmt::replay {

/// The machine that a replay ran on.
struct Machine {
  std::string kernel = {};
  std::optional<std::string> cpu = {};         ///< its model
  std::optional<std::string> huge_pages = {};  ///< always, madvise or never
};

template <class Visitor, output::DescribedAs<Machine> M>
void describe(Visitor& field, M& machine) {
  field("kernel", machine.kernel, "name and release");
  field("cpu", machine.cpu, "the model of the processor");
  field("huge_pages", machine.huge_pages, "transparent ones: always, madvise or never");
}

Machine this_machine();

}  // namespace cmt::replay
