// Builds the table of shown stacks. A recorded node may be two shown ones: one that calls a frame of the script, and
// one that is further inside than all of these.
#include "analysis/stacks/native_frames.h"

#include <array>
#include <cassert>
#include <string>

#include "analysis/stacks/function_names/allocation_functions.h"
#include "analysis/stacks/function_names/python_frames.h"
#include "analysis/stacks/function_names/short_name.h"
#include "libcmt/call_of_init.h"
#include "toolkit/process/smaps.h"

namespace cmt::analysis {
namespace {

/// A path without its folder.
std::string_view file_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_c_library(std::string_view path) {
  constexpr std::array<std::string_view, 7> names{"libc.so", "libc-",     "libpthread", "ld-linux",
                                                  "ld-musl", "libc.musl", "libdl.so"};
  const std::string_view name = file_of(path);
  return std::any_of(names.begin(), names.end(), [name](std::string_view each) { return name.starts_with(each); });
}

bool is_javascript(const StackTable& table, FrameId frame) {
  return frame != 0 && table.frame(frame).module == 0 && !table.names(frame).empty() &&
         is_javascript_function(table.names(frame).front().function);
}

/// Whether a frame is code of V8 itself, which its list of functions leaves out, such as a copy of a builtin.
bool is_of_v8(const StackTable& table, FrameId frame) {
  if (frame == 0 || table.frame(frame).module != 0) return false;
  const std::string_view name = table.names(frame).empty() ? "" : table.names(frame).front().function;
  constexpr std::array<std::string_view, 4> kinds{"Builtin:", "BytecodeHandler:", "Stub:", "RegExp:"};
  return name.empty() ||
         std::any_of(kinds.begin(), kinds.end(), [name](std::string_view kind) { return name.starts_with(kind); });
}

/// Whether a frame is one of the script.
using IsScript = bool (*)(const StackTable&, FrameId);

/// Returns the test for the script's frames of a table; null: it has none.
IsScript find_script(const StackTable& table, Key key) {
  for (ModuleId id = 1; id < table.module_count(); ++id) {
    if (table.module(id).is_interpreter()) return is_python;
  }
  if (key == Key::library) return nullptr;      // no module contains JavaScript
  bool has_v8 = false, has_javascript = false;  // other compilers name functions by their places, too
  for (FrameId id = 1; id < table.frame_count(); ++id) {
    const std::string_view name = table.names(id).empty() ? "" : table.names(id).front().function;
    has_v8 = has_v8 || name.starts_with("v8::") || name.starts_with("node::") || name.starts_with("Builtin");
    has_javascript = has_javascript || is_javascript(table, id);
  }
  return has_v8 && has_javascript ? is_javascript : nullptr;
}

/// The part that a frame has in a stack with frames of a script.
enum class Part : std::uint8_t { script, interpreter, c_library, program, recorder, other };

/// Returns the module that most often calls the script, or else 0.
ModuleId find_interpreter(const StackTable& table, std::span<const StackNode> nodes, const std::vector<bool>& script) {
  std::vector<std::size_t> calls(table.module_count());
  for (StackId id = 1; id < nodes.size(); ++id) {
    const StackId caller = nodes[id].parent;
    if (caller == 0 || !script[nodes[id].frame] || script[nodes[caller].frame]) continue;
    ++calls[table.frame(nodes[caller].frame).module];
  }
  calls[0] = 0;  // code of a JIT compiler
  const auto most = std::max_element(calls.begin(), calls.end());
  return *most == 0 ? 0 : static_cast<ModuleId>(most - calls.begin());
}

/// Returns the parts of all frames.
std::vector<Part> parts_of(const StackTable& table, std::span<const StackNode> nodes, IsScript is_script) {
  std::vector<bool> script(table.frame_count());
  for (FrameId id = 0; id < script.size(); ++id) script[id] = is_script(table, id);
  const std::string& interpreter = table.module(find_interpreter(table, nodes, script)).path;
  std::vector<Part> of_modules(table.module_count(), Part::other);
  for (ModuleId id = 1; id < of_modules.size(); ++id) {
    const std::string& path = table.module(id).path;
    if (path == interpreter || is_of_standard_library(path))
      of_modules[id] = Part::interpreter;
    else if (is_c_library(path))
      of_modules[id] = Part::c_library;
    else if (process::is_tracer(path))
      of_modules[id] = Part::recorder;
    else if (file_of(path).starts_with("python3"))
      of_modules[id] = Part::program;  // of a shared libpython3
  }
  std::vector<Part> parts(table.frame_count());
  for (FrameId id = 0; id < parts.size(); ++id) {
    const bool is_own_code = is_script == is_javascript && is_of_v8(table, id);
    parts[id] = script[id] ? Part::script : is_own_code ? Part::interpreter : of_modules[table.frame(id).module];
  }
  return parts;
}

class ShownTable {
 public:
  ShownTable(const StackTable& named, std::span<const StackNode> nodes, NativeFrames native, Key key,
             IsScript is_script)
      : named_(named), nodes_(nodes), native_(native), key_(key), parts_(parts_of(named, nodes, is_script)) {
    for (ModuleId id = 1; id < named.module_count(); ++id) table_.append_module(named.module(id));
    for (ModuleId id = 0; id < named.module_count(); ++id) table_.append_module(named.module(id));
    for (FrameId id = 0; id < named.frame_count(); ++id)
      frames_.push_back(id == 0 ? 0 : copy_of(id, named.frame(id).module));
    inner_frames_.resize(frames_.size());
  }

  ShownStacks build() {
    std::vector<StackId> ends(nodes_.size()), callers(nodes_.size());  // the shown nodes: as a stack's end, and further
    std::vector<bool> in_script(nodes_.size()), of_start(nodes_.size());
    of_start[0] = true;
    for (StackId id = 1; id < nodes_.size(); ++id) {
      const auto [parent, frame] = nodes_[id];
      assert(parent < id);
      const Part part = parts_[frame];
      in_script[id] = part == Part::script || in_script[parent];
      of_start[id] = part != Part::other && of_start[parent];
      const bool is_recorders = part == Part::recorder && parent != 0;
      if (is_recorders || (in_script[parent] && is_call_of_init(named_, frame))) {
        ends[id] = ends[parent];
        callers[id] = callers[parent];
        continue;
      }
      if (part == Part::script) {
        const bool begins_at_start = !in_script[parent] && of_start[parent];
        ends[id] = callers[id] = table_.add_node({begins_at_start ? 0 : callers[parent], frames_[frame]});
        continue;
      }
      const bool is_left_out = frame != 0 && (native_ == NativeFrames::none || part == Part::interpreter);
      callers[id] = is_left_out ? callers[parent] : table_.add_node({callers[parent], frames_[frame]});
      if (in_script[id] && native_ == NativeFrames::none)
        ends[id] = ends[parent];
      else
        ends[id] = table_.add_node({ends[parent], in_script[id] ? inner_frame(frame, part) : frames_[frame]});
    }
    return {std::move(table_), std::move(ends), named_.module_count()};
  }

 private:
  FrameId copy_of(FrameId id, ModuleId module) {
    const Frame& frame = named_.frame(id);
    const FrameId copy = table_.add_frame({module, frame.address, frame.is_exact});
    if (const auto names = named_.names(id); !names.empty()) table_.set_names(copy, names);
    return copy;
  }

  /// Returns a frame as one that is further inside than all of the script's.
  FrameId inner_frame(FrameId frame, Part part) {
    const bool hands_on = key_ == Key::line || part == Part::interpreter || part == Part::c_library;
    const ModuleId module = named_.frame(frame).module;
    if (!hands_on || frame == 0) return frames_[frame];
    FrameId& inner = inner_frames_[frame];
    if (inner == 0) inner = copy_of(frame, named_.module_count() + module);
    return inner;
  }

  const StackTable& named_;
  const std::span<const StackNode> nodes_;
  const NativeFrames native_;
  const Key key_;
  const std::vector<Part> parts_;      // by frame
  StackTable table_;                   // has each module twice, the second time for frames that hand memory on
  std::vector<FrameId> frames_;        // by frame of named_
  std::vector<FrameId> inner_frames_;  // the same, of the second modules; 0: not yet
};

}  // namespace

std::optional<NativeFrames> parse_native(std::string_view text) {
  if (text == "all") return NativeFrames::all;
  if (text == "fold") return NativeFrames::fold;
  if (text == "none") return NativeFrames::none;
  return std::nullopt;
}

ShownStacks show_stacks(StackTable named, std::span<const StackNode> nodes, NativeFrames native, Key key) {
  const IsScript is_script = native == NativeFrames::all ? nullptr : find_script(named, key);
  if (is_script == nullptr) return {std::move(named)};
  return ShownTable(named, nodes, native, key, is_script).build();
}

Uses shown_uses(Uses uses, const ShownStacks& shown) {
  if (shown.nodes.empty()) return uses;
  for (Uses::Entry& entry : uses.entries) entry.key = shown.of(entry.key);
  std::stable_sort(uses.entries.begin(), uses.entries.end(),
                   [](const Uses::Entry& a, const Uses::Entry& b) { return a.key < b.key; });
  std::vector<Uses::Entry> merged;
  for (Uses::Entry& entry : uses.entries) {
    if (merged.empty() || merged.back().key != entry.key) {
      merged.push_back(std::move(entry));
      continue;
    }
    merged.back().use += entry.use;
    add_lifetimes(merged.back().lifetimes, entry.lifetimes);
    merged.back().squared_bytes += entry.squared_bytes;
  }
  uses.entries = std::move(merged);
  return uses;
}

}  // namespace cmt::analysis
