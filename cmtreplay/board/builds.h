/// Finds builds: what ran under one name may be several builds, on the nodes of a cluster or over time. A board lists
/// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cmtreplay/matrix/cell.h"

namespace cmt::replay {

/// One of several builds of an allocator, or of cmtreplay.
struct BoardBuild {
  std::string of = {};
  std::string sha256 = {};
  std::string version = {};
  std::vector<std::string> nodes = {};
  std::uint64_t cells = 0;
};

template <class Visitor, output::DescribedAs<BoardBuild> B>
void describe(Visitor& field, B& build) {
  field("of", build.of, "an allocator, or cmtreplay");
  field("sha256", build.sha256, "of the library's file, or of cmtreplay and its worker; empty: not known");
  field("version", build.version, "of libc and cmtreplay; empty: not known");
  field("nodes", build.nodes, "the machines that ran it");
  field("cells", build.cells, "with which it was run");
}

/// The builds of each name that has several among these cells, sorted by name.
std::vector<BoardBuild> find_builds(const std::vector<Cell>& cells);

/// One line for each name, with all of its builds.
std::vector<std::string> build_lines(const std::vector<BoardBuild>& builds);

}  // namespace cmt::replay
