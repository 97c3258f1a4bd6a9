// Names types by their descriptions (std::type_info of the Itanium C++ ABI). Every word may be wrong: a first word that
// points to data is often no table of functions.
#include "cmtwatch/explain/heap/block_types.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "libcmt/text/utf8.h"
#include "toolkit/symbols/demangle.h"

namespace cmt::watch::explain {
namespace {

constexpr std::size_t tables_tried = 1000, name_bytes_max = 1024;

class TypeNames {
 public:
  explicit TypeNames(AddressSpace& memory) : memory_(memory) {}

  /// Empty: no type has a table of functions there.
  std::string name_at(std::uint64_t table) {
    const auto head = memory_.read<std::array<std::uint64_t, 2>>(table - 16);  // offset of the object, its description
    if (!head || (*head)[0] != 0 || !is_in_module((*head)[1])) return {};
    const auto description = memory_.read<std::array<std::uint64_t, 2>>((*head)[1]);  // its own table, the type's name
    if (!description || !is_in_module((*description)[0]) || !is_in_module((*description)[1])) return {};
    const std::string name = text_at((*description)[1]);
    constexpr std::string_view prefix = "typeinfo for ";
    const std::string words = name.empty() ? "" : symbols::demangled("_ZTI" + name);
    return words.starts_with(prefix) ? text::to_line(words.substr(prefix.size())) : "";
  }

 private:
  bool is_in_module(std::uint64_t address) const {
    const process::Mapping* const mapping = memory_.find(address);
    return mapping != nullptr && mapping->name.starts_with("/");
  }

  // The page of a name may never have been read by the program. Then the name is read from the file.
  std::string text_at(std::uint64_t address) {
    const process::Mapping* const mapping = memory_.find(address);
    std::string text;
    for (; text.size() < name_bytes_max && address + text.size() < mapping->end;) {
      const std::uint64_t at = address + text.size();
      std::array<char, 16> piece{};
      const std::size_t bytes = std::min<std::uint64_t>(piece.size(), mapping->end - at);
      if (!memory_.read(at, piece.data(), bytes) &&
          !memory_.read_file(mapping->name, mapping->offset + (at - mapping->begin), {piece.data(), bytes}))
        return {};
      const std::string_view more(piece.data(), bytes);
      const auto end = more.find('\0');
      text += more.substr(0, end);
      if (end != more.npos) break;
    }
    const std::size_t begin = text.starts_with("*");  // a type that is local to its file
    return text.substr(begin);
  }

  AddressSpace& memory_;
};

}  // namespace

std::vector<TypedBlocks> name_types(AddressSpace& memory, const HeapFigures& figures, std::size_t most) {
  using Group = std::pair<std::uint64_t, BlockGroup>;
  std::vector<Group> groups(figures.by_type.begin(), figures.by_type.end());
  const auto keeps_more = [](const BlockGroup& a, const BlockGroup& b) { return a.pinned_bytes > b.pinned_bytes; };
  std::sort(groups.begin(), groups.end(), [&](const Group& a, const Group& b) {
    return a.second.pinned_bytes != b.second.pinned_bytes ? keeps_more(a.second, b.second) : a.first < b.first;
  });
  groups.resize(std::min(groups.size(), tables_tried));
  TypeNames names(memory);
  std::map<std::string, BlockGroup> by_name;  // two libraries may have one type
  for (const auto& [table, group] : groups) {
    const std::string name = group.pinned_bytes == 0 ? "" : names.name_at(table);
    if (name.empty()) continue;
    BlockGroup& sum = by_name[name];
    sum.blocks += group.blocks;
    sum.bytes += group.bytes;
    sum.pinned_bytes += group.pinned_bytes;
  }
  std::vector<TypedBlocks> typed;
  for (const auto& [name, group] : by_name) typed.push_back({name, group});
  std::stable_sort(typed.begin(), typed.end(),
                   [&](const TypedBlocks& a, const TypedBlocks& b) { return keeps_more(a.blocks, b.blocks); });
  if (typed.size() > most) typed.resize(most);
  return typed;
}

}  // namespace cmt::watch::explain
