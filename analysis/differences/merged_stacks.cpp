// Merges the stacks of two traces by the names of functions, as merged_stacks.h describes.
#include "analysis/differences/merged_stacks.h"

#include <cassert>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "analysis/stacks/function_names/python_frames.h"
#include "analysis/stacks/function_names/short_name.h"
#include "analysis/stacks/stack_tree.h"

namespace cmt::analysis {
namespace {

/// The libraries of a trace by the names that are compared: without versions, and "" for the program.
class LibraryKeys {
 public:
  explicit LibraryKeys(const StackTable& stacks) : keys_(stacks.module_count()) {
    std::map<std::string, std::set<std::string>> paths;
    for (ModuleId id = 1; id < stacks.module_count(); ++id)
      paths[short_name(stacks, id)].insert(stacks.module(id).path);
    for (ModuleId id = 1; id < stacks.module_count(); ++id) {
      const std::string& path = stacks.module(id).path;
      const std::string key = short_name(stacks, id);
      keys_[id] = paths[key].size() == 1 ? key : path.substr(path.rfind('/') + 1);
    }
    keys_[0] = "[no module]";
  }

  const std::string& of(ModuleId id) const { return keys_[id]; }

 private:
  static std::string short_name(const StackTable& stacks, ModuleId id) {
    const std::string& path = stacks.module(id).path;
    const std::string name = path.substr(path.rfind('/') + 1);
    if (path.empty()) return "[no module]";
    if (name.starts_with('[')) return name;  // the kernel's
    return name.find(".so") == std::string::npos ? std::string() : unversioned(name);
  }

  std::vector<std::string> keys_;
};

/// A template's arguments in one spelling: debug information has "const int&" where a symbol has "int const&".
std::string without_blanks_and_const(std::string_view arguments) {
  std::string text;
  for (std::size_t at = 0; at < arguments.size(); ++at) {
    const auto is_letter = [&](std::size_t i) {
      return i < arguments.size() &&
             (arguments[i] == '_' || std::isalnum(static_cast<unsigned char>(arguments[i])) != 0);
    };
    if (arguments.substr(at).starts_with("const") && !is_letter(at + 5) && !is_letter(at - 1))
      at += 4;
    else if (arguments[at] != ' ')
      text += arguments[at];
  }
  return text;
}

/// Returns a function's own name. Returns an empty text for "libx.so+0x1234", the name of a function without a symbol.
std::string_view own_name(const StackTable& stacks, FrameId frame, const FrameName& name) {
  const std::string library = library_text(stacks, frame) + "+0x";
  return name.function.starts_with(library) ? std::string_view() : without_clone(name.function);
}

/// The keys by which functions of both traces are matched.
class FunctionKeys {
 public:
  /// To be called for both traces, before the first add_libraries().
  void add_names(const StackTable& stacks, const StackTree& tree) {
    for (const FrameId frame : tree.frames()) {
      for (const FrameName& name : stacks.names(frame)) {
        const BareName bare = bare_name(own_name(stacks, frame, name));
        if (!bare.had_signature) bare_.insert(bare.text);
      }
    }
  }

  void add_libraries(const StackTable& stacks, const StackTree& tree, const LibraryKeys& libraries) {
    std::unordered_map<std::string, ModuleId> first;
    for (const FrameId frame : tree.frames()) {
      const ModuleId module = stacks.frame(frame).module;
      for (const FrameName& name : stacks.names(frame)) {
        const auto found = first.try_emplace(of(own_name(stacks, frame, name)), module).first;
        if (libraries.of(found->second) != libraries.of(module)) shared_.insert(found->first);
      }
    }
  }

  /// Returns a function's key: its name, or its bare name if a trace contains that name without a signature.
  std::string of(std::string_view function) const {
    BareName bare = bare_name(function);
    return bare_.contains(bare.text) ? std::move(bare.text) : std::string(function);
  }

  /// Returns whether several libraries of a trace have a function with this key.
  bool is_shared(const std::string& key) const { return shared_.contains(key); }

 private:
  std::unordered_set<std::string> bare_, shared_;
};

class StackMerger {
 public:
  StackMerger(const GroupOptions<DiffUse>& options, const FunctionKeys& keys)
      : by_(options.by), charges_(options.charges), hidden_(options.hidden), keys_(keys) {}

  /// Returns the node in the merged table for each of the table's nodes that are in the tree.
  std::vector<StackId> add(const DiffSide& side, const StackTree& tree, const LibraryKeys& libraries) {
    const StackTable& stacks = side.stacks;
    charges_.handing_on_from = side.handing_on_from;
    AllocationFunctions allocation_functions(charges_);
    std::vector<std::optional<std::vector<Function>>> frames(stacks.frame_count());
    std::vector<StackId> merged(stacks.node_count());
    for (StackId id = 1; id < stacks.node_count(); ++id) {
      if (!tree.has(id)) continue;
      const StackNode& node = stacks.node(id);
      merged[id] = merged[node.parent];
      if (node.frame == 0) {
        merged[id] = merged_.add_node({0, 0});
        continue;
      }
      auto& functions = frames[node.frame];
      if (!functions) functions = functions_of(stacks, node.frame, libraries, allocation_functions);
      for (const auto& [function, is_allocation] : *functions) {
        if (!is_allocation || merged[id] == 0) merged[id] = merged_.add_node({merged[id], function});
      }
    }
    return merged;
  }

  StackTable finish() { return std::move(merged_); }

 private:
  struct Function {
    FrameId frame;  // of the merged table
    bool is_allocation;
  };

  /// The functions at a frame, the outermost first.
  std::vector<Function> functions_of(const StackTable& stacks, FrameId frame, const LibraryKeys& libraries,
                                     AllocationFunctions& allocation) {
    std::vector<Function> functions;
    const std::span<const FrameName> names = stacks.names(frame);
    if (names.empty()) return {{function_of(stacks, frame, {}, libraries), allocation.has(stacks, frame, {})}};
    for (auto name = names.rbegin(); name != names.rend(); ++name) {
      if (hidden_.matches_function(name->function)) continue;
      functions.push_back({function_of(stacks, frame, *name, libraries), allocation.has(stacks, frame, *name)});
    }
    return functions;
  }

  FrameId function_of(const StackTable& stacks, FrameId frame, const FrameName& name, const LibraryKeys& libraries) {
    const ModuleId module = stacks.frame(frame).module;
    const std::string_view function = own_name(stacks, frame, name);
    std::string key = keys_.of(function);
    const bool is_of_library = function.empty() || by_ == By::library || keys_.is_shared(key);
    key += '\0';
    if (is_of_library) key += libraries.of(module);
    if (is_python(stacks, frame)) key += python_file(name.file);
    if (by_ == By::line) {
      key += '\0';
      key += name.file.substr(name.file.rfind('/') + 1);
      key += ':' + std::to_string(name.line);
    }
    const auto [found, is_new] = functions_.try_emplace(key, 0);
    if (!is_new) return found->second;
    const ModuleId library = library_of(stacks, module, libraries);
    found->second = merged_.add_frame({library, functions_.size() << 4, true});
    const std::string text = function.empty() ? "[in " + library_text(stacks, frame) + "]" : std::string(function);
    const FrameName merged{.function = text, .file = name.file, .line = by_ == By::line ? name.line : 0};
    merged_.set_names(found->second, {&merged, 1});
    return found->second;
  }

  ModuleId library_of(const StackTable& stacks, ModuleId module, const LibraryKeys& libraries) {
    if (stacks.module(module).path.empty()) return 0;
    const auto [found, is_new] = libraries_.try_emplace(libraries.of(module), 0);
    if (is_new) {
      Module library;
      library.path = stacks.module(module).path;
      library.begin = module;  // no two are equal
      found->second = merged_.append_module(library);
    }
    return found->second;
  }

  By by_;
  ChargeRule charges_;
  NamePattern hidden_;
  const FunctionKeys& keys_;
  StackTable merged_;
  std::unordered_map<std::string, FrameId> functions_;   // by key, with the library and the line if they count
  std::unordered_map<std::string, ModuleId> libraries_;  // by key
};

}  // namespace

std::string unversioned(const std::string& library) {
  const std::size_t end = library.rfind(".so.");
  if (end == std::string::npos) return library;
  const bool is_version = library.find_first_not_of("0123456789.", end + 4) == std::string::npos;
  return is_version ? library.substr(0, end + 3) : library;
}

std::string_view without_clone(std::string_view function) {
  const std::size_t clone = function.find(" [clone ");
  if (clone != std::string_view::npos) function = function.substr(0, clone);
  for (const std::string_view suffix : {".constprop.", ".isra.", ".part.", ".cold", ".lto_priv."}) {
    const std::size_t at = function.find(suffix);
    if (at != std::string_view::npos && at != 0) function = function.substr(0, at);
  }
  return function;
}

BareName bare_name(std::string_view function) {
  BareName bare;
  for (std::size_t at = 0; at < function.size();) {
    constexpr std::string_view anonymous = "(anonymous namespace)";
    const char c = function[at];
    if (function.substr(at).starts_with(anonymous)) {
      bare.text += anonymous;
      at += anonymous.size();
    } else if (c == '(') {
      bare.had_signature = true;
      break;
    } else if (c == '<') {
      const std::size_t end = end_of_brackets(function, at);
      bare.text += without_blanks_and_const(function.substr(at, end - at));
      at = end;
    } else {
      c == ' ' ? bare.text.clear() : bare.text.push_back(c);  // what was before is the result
      ++at;
    }
  }
  return bare;
}

MergedStacks merge_stacks(const DiffSide& before, const DiffSide& after, const GroupOptions<DiffUse>& options) {
  const LibraryKeys before_libraries(before.stacks), after_libraries(after.stacks);
  const StackTree before_tree(before.stacks, before.uses), after_tree(after.stacks, after.uses);
  FunctionKeys keys;
  keys.add_names(before.stacks, before_tree);
  keys.add_names(after.stacks, after_tree);
  keys.add_libraries(before.stacks, before_tree, before_libraries);
  keys.add_libraries(after.stacks, after_tree, after_libraries);
  StackMerger merger(options, keys);
  const std::vector<StackId> after_nodes = merger.add(after, after_tree, after_libraries);
  const std::vector<StackId> before_nodes = merger.add(before, before_tree, before_libraries);

  std::map<StackId, DiffUses::Entry> entries;
  const auto entry_of = [&](StackId key) -> DiffUses::Entry& {
    return entries.try_emplace(key, DiffUses::Entry{.key = key, .use = {}}).first->second;
  };
  for (const Uses::Entry& each : before.uses.entries) {
    assert(each.key < before_nodes.size());
    DiffUses::Entry& entry = entry_of(before_nodes[each.key]);
    entry.use.before += each.use;
    entry.squared_bytes += each.squared_bytes;
    add_lifetimes(entry.before, each.lifetimes);
  }
  for (const Uses::Entry& each : after.uses.entries) {
    assert(each.key < after_nodes.size());
    DiffUses::Entry& entry = entry_of(after_nodes[each.key]);
    entry.use.after += each.use;
    entry.squared_bytes += each.squared_bytes;
    add_lifetimes(entry.after, each.lifetimes);
  }
  MergedStacks merged{merger.finish(), {}};
  for (auto& [key, entry] : entries) merged.uses.entries.push_back(std::move(entry));
  return merged;
}

}  // namespace cmt::analysis
