#include "trace2cmt/formats/heaptrack_stacks.h"

#include <algorithm>
#include <limits>

#include "trace2cmt/formats/line_parts.h"

namespace cmt::trace2cmt {
namespace {

/// A text with its length before it, and a blank between them.
bool take_counted(std::string_view& line, std::string_view& taken) {
  std::uint64_t length = 0;
  if (!take_hex(line, length) || line.size() < length + 1) return false;
  taken = line.substr(1, length);
  line.remove_prefix(length + 1);
  return true;
}

}  // namespace

bool HeaptrackStacks::take(char sign, std::string_view line, std::uint64_t time_ns, cmt::StackTable& stacks) {
  if (sign != 'm' && !before_.empty()) settle_modules(time_ns, stacks);
  std::string_view program;
  switch (sign) {
    case 'x':
      if (take_counted(line, program)) program_ = program;
      return false;
    case 'm':
      return take_module(line, time_ns, stacks);
    case 't':
      return take_node(line, stacks);
    case 's':
      return take_string(line);
    case 'i':
      return take_address(line, stacks);
    default:
      return false;
  }
}

bool HeaptrackStacks::take_module(std::string_view line, std::uint64_t time_ns, cmt::StackTable& stacks) {
  std::string_view path;
  std::uint64_t base = 0, offset = 0, size = 0;
  if (!take_counted(line, path)) return false;
  if (path == "-") return begin_modules(), true;
  if (!take_hex(line, base)) return false;
  std::uint64_t begin = std::numeric_limits<std::uint64_t>::max(), end = 0;
  while (take_hex(line, offset) && take_hex(line, size)) {
    begin = std::min(begin, base + offset);
    end = std::max(end, base + offset + size);
  }
  if (begin >= end) return false;
  const std::string name(path == "x" ? std::string_view(program_) : path);
  const auto known = std::find_if(before_.begin(), before_.end(), [&](const LoadedModule& each) {
    return each.begin == begin && each.end == end && stacks.module(each.id).path == name;
  });
  if (known != before_.end()) {
    loaded_.push_back(*known);
  } else {
    const cmt::ModuleId id =
        stacks.append_module({.path = name, .begin = begin, .end = end, .bias = base, .loaded_ns = time_ns});
    loaded_.push_back({id, begin, end});
  }
  return true;
}

/// The list of modules is complete: those of the list before that are not in it have gone.
void HeaptrackStacks::settle_modules(std::uint64_t time_ns, cmt::StackTable& stacks) {
  for (const LoadedModule& module : before_) {
    const bool stays = std::any_of(loaded_.begin(), loaded_.end(), [&](auto& each) { return each.id == module.id; });
    if (!stays) stacks.set_unloaded(module.id, time_ns);
  }
  before_.clear();
}

cmt::ModuleId HeaptrackStacks::module_at(std::uint64_t address) const {
  const auto found = std::find_if(loaded_.begin(), loaded_.end(), [&](const LoadedModule& module) {
    return address > module.begin && address <= module.end;
  });
  return found == loaded_.end() ? 0 : found->id;
}

bool HeaptrackStacks::take_node(std::string_view line, cmt::StackTable& stacks) {
  std::uint64_t place = 0, parent = 0;
  if (!take_hex(line, place) || !take_hex(line, parent) || parent >= nodes_.size()) return false;
  const bool is_interpreted = addresses_.size() > 1;
  if (is_interpreted && place >= addresses_.size()) return false;
  const cmt::FrameId frame = is_interpreted ? addresses_[place] : stacks.add_frame({module_at(place), place});
  nodes_.push_back(frame != 0 || parent == 0 ? stacks.add_node({nodes_[parent], frame}) : nodes_[parent]);
  return true;
}

bool HeaptrackStacks::take_string(std::string_view line) {
  std::string_view string;
  if (!take_counted(line, string)) return false;
  strings_.emplace_back(string);
  return true;
}

bool HeaptrackStacks::take_address(std::string_view line, cmt::StackTable& stacks) {
  std::uint64_t address = 0, module = 0, function = 0, file = 0, number = 0;
  if (!take_hex(line, address) || !take_hex(line, module)) return false;
  const std::string& path = text(module);
  const cmt::ModuleId id = path.empty() ? 0 : stacks.add_module({.path = path});
  addresses_.push_back(stacks.add_frame({id, address}));
  std::vector<cmt::FrameName> names;
  while (take_hex(line, function)) {
    file = number = 0;
    if (take_hex(line, file)) take_hex(line, number);
    names.push_back({text(function), text(file), static_cast<std::uint32_t>(number)});
  }
  if (!names.empty()) stacks.set_names(addresses_.back(), names);
  return true;
}

}  // namespace cmt::trace2cmt
