/// Describes the machine of a replay.
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
  std::optional<std::string> libc = {};        ///< "glibc 2.36"
};

template <class Visitor, output::DescribedAs<Machine> M>
void describe(Visitor& field, M& machine) {
  field("kernel", machine.kernel, "name and release");
  field("cpu", machine.cpu, "the model of the processor");
  field("huge_pages", machine.huge_pages, "transparent ones: always, madvise or never");
  field("libc", output::omit_if_empty(machine.libc), "its C library, and the version");
}

Machine this_machine();
/// The C library of this process: "glibc 2.36".
std::string libc_name();

}  // namespace cmt::replay
