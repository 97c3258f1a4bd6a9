// Counts cells by name, hash and version of what they ran, as builds.h describes.
#include "cmtreplay/board/builds.h"

#include <algorithm>

#include "toolkit/output/numbers.h"

namespace cmt::replay {
namespace {

constexpr const char* replay_name = "cmtreplay";

void add(std::vector<BoardBuild>& builds, const BoardBuild& build, const std::string& node) {
  auto found = std::find_if(builds.begin(), builds.end(), [&](const BoardBuild& other) {
    return other.of == build.of && other.sha256 == build.sha256 && other.version == build.version;
  });
  if (found == builds.end()) found = builds.insert(found, build);
  ++found->cells;
  if (std::find(found->nodes.begin(), found->nodes.end(), node) == found->nodes.end()) found->nodes.push_back(node);
}

void add_allocator(std::vector<BoardBuild>& builds, const Cell& cell, const CellAllocator& allocator) {
  const std::string name = parse_allocator_name(allocator.name).name;
  const std::string version = name == "libc" ? cell.machine.libc.value_or("") : "";
  add(builds, {.of = name, .sha256 = allocator.sha256, .version = version}, cell.node);
}

/// "glibc 2.36, 1a2b3c4d on n1, n2".
std::string build_text(const BoardBuild& build) {
  constexpr std::size_t digits = 8;
  std::string text = build.version;
  if (!build.sha256.empty()) text += (text.empty() ? "" : ", ") + build.sha256.substr(0, digits);
  if (text.empty()) text = "an unknown one";
  for (std::size_t i = 0; i < build.nodes.size(); ++i) text += (i == 0 ? " on " : ", ") + build.nodes[i];
  return text + " (" + output::counted(build.cells, "cell") + ")";
}

}  // namespace

std::vector<BoardBuild> find_builds(const std::vector<Cell>& cells) {
  std::vector<BoardBuild> builds;
  for (const Cell& cell : cells) {
    add(builds, {.of = replay_name, .sha256 = cell.build.value_or(""), .version = cell.version}, cell.node);
    add_allocator(builds, cell, cell.allocator);
    if (cell.reference.name != cell.allocator.name) add_allocator(builds, cell, cell.reference);
  }
  std::stable_sort(builds.begin(), builds.end(), [](const BoardBuild& a, const BoardBuild& b) { return a.of < b.of; });
  const std::vector<BoardBuild> all = builds;
  std::erase_if(builds, [&all](const BoardBuild& build) {
    return std::count_if(all.begin(), all.end(), [&](const BoardBuild& other) { return other.of == build.of; }) == 1;
  });
  return builds;
}

std::vector<std::string> build_lines(const std::vector<BoardBuild>& builds) {
  std::vector<std::string> lines;
  const std::string* name = nullptr;
  for (const BoardBuild& build : builds) {
    const bool is_first = !name || *name != build.of;
    if (is_first) {
      const bool is_joined = build.of == "libc" || build.of == replay_name;
      lines.push_back(build.of + " is of several builds, " + (is_joined ? "not told apart here: " : "a column each: "));
    }
    lines.back() += (is_first ? "" : "; ") + build_text(build);
    name = &build.of;
  }
  return lines;
}

}  // namespace cmt::replay
