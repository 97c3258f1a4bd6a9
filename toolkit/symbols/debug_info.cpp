// Walks DWARF entries by libdw, as debug_info.h describes. A damaged file must end the walk: steps are counted.

#include "toolkit/symbols/debug_info.h"

#include <dwarf.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "toolkit/symbols/debug_files.h"
#include "toolkit/symbols/demangle.h"

namespace cmt::symbols {
namespace {

constexpr int depth_max = 256;  // of scopes within scopes

bool is_function(int tag) { return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine; }

/// Entries that can contain functions, but are no code themselves.
bool is_namespace(int tag) { return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_imported_unit; }
bool is_type(int tag) {
  return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type ||
         tag == DW_TAG_enumeration_type || tag == DW_TAG_interface_type;
}

/// Parts of a function that can hold inlined ones.
bool is_block(int tag) {
  return tag == DW_TAG_lexical_block || tag == DW_TAG_try_block || tag == DW_TAG_catch_block || tag == DW_TAG_with_stmt;
}

const char* string_of(Dwarf_Die die, unsigned name) {
  Dwarf_Attribute attribute;
  return dwarf_formstring(dwarf_attr_integrate(&die, name, &attribute));
}

const char* linkage_name(Dwarf_Die die) {
  const char* const name = string_of(die, DW_AT_linkage_name);
  return name != nullptr ? name : string_of(die, DW_AT_MIPS_linkage_name);
}

/// Replaces an entry by the one that an attribute refers to. Returns false if there is none.
bool follow(Dwarf_Die& die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Die target;
  if (dwarf_attr(&die, name, &attribute) == nullptr || dwarf_formref_die(&attribute, &target) == nullptr) return false;
  die = target;
  return true;
}

/// The entry that declares a function, in the scope that its name belongs to.
Dwarf_Die declaration_of(Dwarf_Die function) {
  for (int steps = 0; steps < 16; ++steps) {
    if (!follow(function, DW_AT_abstract_origin) && !follow(function, DW_AT_specification)) break;
  }
  return function;
}

/// A qualifier with the scope that is next further inside.
std::string qualified(const std::string& outer, Dwarf_Die scope, const char* unnamed) {
  const int tag = dwarf_tag(&scope);
  if (!is_namespace(tag) && !is_type(tag) && !is_function(tag)) return outer;
  if (const char* const mangled = linkage_name(scope)) return demangled(mangled) + "::";
  if (const char* const name = string_of(scope, DW_AT_name)) return outer + name + "::";
  return outer + (tag == DW_TAG_namespace ? "(anonymous namespace)::" : is_type(tag) ? unnamed : "");
}

std::uint32_t number_of(Dwarf_Die die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_attr(&die, name, &attribute) == nullptr || dwarf_formudata(&attribute, &value) != 0) return 0;
  return value > 0xffffffff ? 0 : static_cast<std::uint32_t>(value);
}

/// The file and the line of a line in a table; null: none.
SourceFrame place_of(Dwarf_Line* line) {
  SourceFrame place;
  if (line == nullptr) return place;
  const char* const file = dwarf_linesrc(line, nullptr, nullptr);
  if (file != nullptr) place.file = file;
  int number = 0;
  if (dwarf_lineno(line, &number) == 0 && number > 0) place.line = static_cast<std::uint32_t>(number);
  return place;
}

/// The tables of lines, one after the other.
std::string_view lines_section(Elf* elf) {
  Elf_Scn* const section = find_section(elf, ".debug_line");
  const Elf_Data* const data = section == nullptr ? nullptr : elf_getdata(section, nullptr);
  return data == nullptr || data->d_buf == nullptr ? ""
                                                   : std::string_view(static_cast<char*>(data->d_buf), data->d_size);
}

/// How long the first of the tables is; 0: there is none, or it is damaged.
std::size_t bytes_of_table(std::string_view tables) {
  std::uint32_t word = 0;
  std::uint64_t bytes = 0;
  if (tables.size() < sizeof word + sizeof bytes) return 0;
  std::memcpy(&word, tables.data(), sizeof word);
  std::memcpy(&bytes, tables.data() + sizeof word, sizeof bytes);  // if `word` does not contain it
  const std::size_t header = word == 0xffffffff ? sizeof word + sizeof bytes : sizeof word;
  if (word != 0xffffffff) bytes = word;
  return bytes > tables.size() - header ? 0 : header + bytes;
}

}  // namespace

DebugInfo::DebugInfo(Dwarf* dwarf, const SymbolTable& symbols, std::uint64_t symbols_bias, std::uint64_t bytes,
                     std::vector<std::string> folders)
    : dwarf_(dwarf),
      symbols_(symbols),
      symbols_bias_(symbols_bias),
      steps_left_(16 * bytes + (1 << 20)),
      folders_(std::move(folders)) {}

void DebugInfo::look_up(std::span<const std::uint64_t> addresses, const Found& found) {
  addresses_ = addresses;
  found_ = &found;
  known_.assign(addresses.size(), false);
  Indexes all(addresses.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  Dwarf_CU* unit = nullptr;
  Dwarf_Die die;
  std::uint8_t type = 0;
  std::vector<std::pair<std::size_t, Dwarf_Die>> without_function;
  std::vector<Dwarf_Off> tables;
  while (dwarf_get_units(dwarf_, unit, &unit, nullptr, &type, &die, nullptr) == 0) {
    if (steps_left_ == 0) return;
    --steps_left_;
    const int tag = dwarf_tag(&die);
    if (tag != DW_TAG_compile_unit && tag != DW_TAG_skeleton_unit) continue;
    Dwarf_Attribute attribute;
    Dwarf_Word table = 0;
    if (dwarf_formudata(dwarf_attr(&die, DW_AT_stmt_list, &attribute), &table) == 0) tables.push_back(table);
    const Indexes wanted = within(die, all);
    if (wanted.empty()) continue;
    walk_unit(type == DW_UT_skeleton ? split_unit_of(die).value_or(die) : die, die, wanted);
    for (const std::size_t index : wanted) {
      if (!is_known(index)) without_function.emplace_back(index, die);
    }
  }
  // A compiler that is to write only lines leaves out the functions in which nothing is inlined.
  for (auto& [index, lines] : without_function) {
    if (!is_known(index)) report_place(index, dwarf_getsrc_die(&lines, addresses_[index]));
  }
  look_up_in_tables(tables);
}

/// The unit in a file of its own whose skeleton this is. libdw opens that file, at all paths that the skeleton may
/// mean. So each has to be a regular file or none.
std::optional<Dwarf_Die> DebugInfo::split_unit_of(Dwarf_Die skeleton) const {
  namespace fs = std::filesystem;
  const auto text_of = [&](unsigned attribute_name) {  // not string_of(), which would look in the split unit
    Dwarf_Attribute attribute;
    return dwarf_formstring(dwarf_attr(&skeleton, attribute_name, &attribute));
  };
  const char* const name = text_of(dwarf_hasattr(&skeleton, DW_AT_dwo_name) ? DW_AT_dwo_name : DW_AT_GNU_dwo_name);
  const char* const compiled_in = text_of(DW_AT_comp_dir);
  if (name == nullptr) return std::nullopt;
  for (const fs::path folder : folders_) {
    for (const fs::path& path : {folder / name, folder / (compiled_in == nullptr ? "" : compiled_in) / name}) {
      std::error_code error;
      const fs::file_status status = fs::status(path, error);
      if (fs::exists(status) && !fs::is_regular_file(status)) return std::nullopt;
    }
  }
  Dwarf_Die split{};
  if (dwarf_cu_info(skeleton.cu, nullptr, nullptr, nullptr, &split, nullptr, nullptr, nullptr) != 0)
    return std::nullopt;
  return split.addr == nullptr ? std::nullopt : std::optional(split);
}

/// Selects the addresses that an entry's code covers and that have no answer yet.
DebugInfo::Indexes DebugInfo::within(Dwarf_Die die, const Indexes& among) const {
  Indexes inside;
  Dwarf_Addr base = 0, begin = 0, end = 0;
  for (std::ptrdiff_t at = 0; (at = dwarf_ranges(&die, at, &base, &begin, &end)) > 0;) {
    const auto below = [this](std::size_t index, std::uint64_t bound) { return addresses_[index] < bound; };
    auto next = std::lower_bound(among.begin(), among.end(), begin, below);
    for (; next != among.end() && addresses_[*next] < end; ++next) {
      if (!is_known(*next)) inside.push_back(*next);
    }
  }
  std::sort(inside.begin(), inside.end());
  inside.erase(std::unique(inside.begin(), inside.end()), inside.end());
  return inside;
}

void DebugInfo::walk_unit(Dwarf_Die unit, Dwarf_Die lines, const Indexes& wanted) {
  chain_.clear();  // an exception may have left it
  lines_ = lines;
  if (dwarf_getsrcfiles(&unit, &files_, &files_count_) != 0) files_count_ = 0;
  walk_scope(unit, wanted, false, 0);
  if (std::all_of(wanted.begin(), wanted.end(), [this](std::size_t i) { return is_known(i); })) return;
  walk_scope(unit, wanted, true, 0);  // Rust has functions within types
}

/// Looks for functions in a unit, a namespace or a type.
void DebugInfo::walk_scope(Dwarf_Die scope, Indexes wanted, bool descends_types, int depth) {
  Dwarf_Die child;
  if (depth > depth_max || !first_child(scope, child)) return;
  do {
    const int tag = dwarf_tag(&child);
    if (tag == DW_TAG_subprogram) {
      const Indexes inside = within(child, wanted);
      if (!inside.empty()) walk_function(child, inside, depth + 1);
    } else if (is_namespace(tag) || (descends_types && is_type(tag))) {
      walk_scope(child, wanted, descends_types, depth + 1);
    }
  } while (next_sibling(child));
}

/// Walks a function, or a part of one, down to what is inlined at the addresses.
void DebugInfo::walk_function(Dwarf_Die die, const Indexes& wanted, int depth) {
  const bool is_link = is_function(dwarf_tag(&die));
  if (is_link) chain_.push_back(die);
  Dwarf_Die child;
  if (depth <= depth_max && first_child(die, child)) {
    do {
      const int tag = dwarf_tag(&child);
      if (!is_function(tag) && !is_block(tag)) continue;
      const Indexes inside = within(child, wanted);
      if (!inside.empty()) walk_function(child, inside, depth + 1);
    } while (next_sibling(child));
  }
  if (!is_link) return;
  for (const std::size_t index : wanted) {
    if (!is_known(index)) report_frames(index);
  }
  chain_.pop_back();
}

void DebugInfo::report_frames(std::size_t index) {
  assert(index < known_.size() && !chain_.empty());
  known_[index] = true;
  std::vector<SourceFrame> frames;
  frames.reserve(chain_.size());
  for (std::size_t i = chain_.size(); i-- > 0;) {
    const bool is_innermost = i + 1 == chain_.size();
    SourceFrame& frame = frames.emplace_back(is_innermost ? place_of(dwarf_getsrc_die(&lines_, addresses_[index]))
                                                          : call_place(chain_[i + 1]));
    frame.function = name_of(chain_[i], addresses_[index]);
    if (dwarf_tag(&chain_[i]) == DW_TAG_subprogram) break;  // one within another is not inlined
  }
  (*found_)(index, std::move(frames));
}

void DebugInfo::report_place(std::size_t index, Dwarf_Line* line) {
  SourceFrame place = place_of(line);
  if (place.line == 0) return;
  known_[index] = true;
  (*found_)(index, {std::move(place)});
}

/// Looks in the tables of lines that no unit has, such as those of clang's -gline-directives-only. Reads of the others
/// only how long they are: all of them would take long.
void DebugInfo::look_up_in_tables(std::vector<Dwarf_Off>& of_units) {
  if (std::find(known_.begin(), known_.end(), false) == known_.end()) return;
  std::sort(of_units.begin(), of_units.end());
  const std::string_view tables = lines_section(dwarf_getelf(dwarf_));
  for (std::size_t at = 0, bytes = 0; (bytes = bytes_of_table(tables.substr(at))) != 0; at += bytes) {
    const bool is_of_unit = std::binary_search(of_units.begin(), of_units.end(), at);
    const std::uint64_t steps = is_of_unit ? 1 : bytes + of_units.size();  // libdw looks through the units
    if (steps_left_ < steps) return;
    steps_left_ -= steps;
    if (!is_of_unit) look_up_in_table(at);
  }
}

void DebugInfo::look_up_in_table(Dwarf_Off table) {
  Dwarf_CU* unit = nullptr;
  Dwarf_Off next = 0;
  Dwarf_Lines* lines = nullptr;
  std::size_t count = 0;
  if (dwarf_next_lines(dwarf_, table, &next, &unit, nullptr, nullptr, &lines, &count) != 0) return;
  for (std::size_t i = 0; i + 1 < count; ++i) {  // by address
    Dwarf_Line* const line = dwarf_onesrcline(lines, i);
    Dwarf_Addr begin = 0, end = 0;
    bool is_end = true;
    if (dwarf_lineendsequence(line, &is_end) != 0 || is_end || dwarf_lineaddr(line, &begin) != 0) continue;
    if (dwarf_lineaddr(dwarf_onesrcline(lines, i + 1), &end) != 0) continue;
    auto found = std::lower_bound(addresses_.begin(), addresses_.end(), begin);
    for (; found != addresses_.end() && *found < end; ++found) {
      const auto index = static_cast<std::size_t>(found - addresses_.begin());
      if (!is_known(index)) report_place(index, line);
    }
  }
}

/// The file and the line at which an inlined function is called.
SourceFrame DebugInfo::call_place(Dwarf_Die inlined) const {
  SourceFrame place;
  const std::uint32_t number = number_of(inlined, DW_AT_call_file);
  const char* const file = number < files_count_ ? dwarf_filesrc(files_, number, nullptr, nullptr) : nullptr;
  if (file != nullptr) place.file = file;
  place.line = number_of(inlined, DW_AT_call_line);
  return place;
}

const std::string& DebugInfo::name_of(Dwarf_Die function, std::uint64_t address) {
  Dwarf_Die named = function;
  if (dwarf_tag(&function) == DW_TAG_inlined_subroutine) follow(named, DW_AT_abstract_origin);
  const auto key = reinterpret_cast<Dwarf_Off>(named.addr);
  const auto [at, is_new] = names_.try_emplace(key);
  if (is_new) at->second = new_name(function, address);
  return at->second;
}

std::string DebugInfo::new_name(Dwarf_Die function, std::uint64_t address) {
  if (const char* const mangled = linkage_name(function)) return demangled(mangled);
  if (dwarf_tag(&function) == DW_TAG_subprogram) {
    const char* const symbol = symbols_.find(address + symbols_bias_);
    if (symbol != nullptr && std::strncmp(symbol, "_Z", 2) == 0) return demangled(symbol);
  }
  const char* const name = string_of(function, DW_AT_name);
  if (name == nullptr) return {};
  const bool is_call_operator = std::strcmp(name, "operator()") == 0;
  return qualifier_of(declaration_of(function), is_call_operator ? "{lambda}::" : "{unnamed type}::") + name;
}

bool DebugInfo::first_child(Dwarf_Die parent, Dwarf_Die& child) {
  return steps_left_ != 0 && dwarf_child(&parent, &child) == 0;
}

bool DebugInfo::next_sibling(Dwarf_Die& die) {
  if (steps_left_ == 0) return false;
  --steps_left_;
  Dwarf_Die next;
  if (dwarf_siblingof(&die, &next) != 0 || next.addr <= die.addr) return false;
  die = next;
  return true;
}

/// The namespaces, types and functions that contain an entry: "shapes::Box<int>::". A type without a name is written as
/// `unnamed`.
std::string DebugInfo::qualifier_of(Dwarf_Die declaration, const char* unnamed) {
  Dwarf_Die scope;
  if (dwarf_diecu(&declaration, &scope, nullptr, nullptr) == nullptr) return {};
  const int language = dwarf_srclang(&scope);
  if (language == DW_LANG_C || language == DW_LANG_C89 || language == DW_LANG_C99 || language == DW_LANG_C11) return {};
  std::string text;
  for (int depth = 0; depth < depth_max; ++depth) {
    Dwarf_Die child;
    if (!first_child(scope, child)) break;
    // Entries are in order: the last one that does not begin after the declaration contains it.
    Dwarf_Die holder = child;
    while (next_sibling(child) && child.addr <= declaration.addr) holder = child;
    if (holder.addr >= declaration.addr) break;
    text = qualified(text, holder, unnamed);
    scope = holder;
  }
  return text;
}

}  // namespace cmt::symbols
