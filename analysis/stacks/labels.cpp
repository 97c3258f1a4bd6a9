// Names the functions of frames, and finds allocation functions by their names.
#include "analysis/stacks/labels.h"

#include <regex.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <stdexcept>
#include <utility>

#include "analysis/stacks/short_name.h"
#include "toolkit/output/numbers.h"

namespace cmt::analysis {
namespace {

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

bool is_allocation_function(std::string_view function) {
  static constexpr std::array<std::string_view, 22> names{"malloc",
                                                          "calloc",
                                                          "realloc",
                                                          "reallocarray",
                                                          "memalign",
                                                          "aligned_alloc",
                                                          "posix_memalign",
                                                          "valloc",
                                                          "pvalloc",
                                                          "__libc_malloc",
                                                          "__libc_calloc",
                                                          "__libc_realloc",
                                                          "__libc_memalign",
                                                          "__rust_alloc",
                                                          "__rust_realloc",
                                                          "__rust_alloc_zeroed",
                                                          "__rdl_alloc",
                                                          "__rdl_realloc",
                                                          "__rdl_alloc_zeroed",
                                                          "__rust_no_alloc_shim_is_unstable",
                                                          "_Znwm",
                                                          "_Znam"};
  static constexpr std::array<std::string_view, 6> beginnings{"operator new",      "alloc::alloc::",
                                                              "alloc::raw_vec::",  "<alloc::alloc::Global",
                                                              "<alloc::raw_vec::", "__rustc::__r"};
  static constexpr std::array<std::string_view, 21> parts_of_std{"allocate",
                                                                 "allocate_at_least",
                                                                 "__allocate_at_least",
                                                                 "__allocate_guarded",
                                                                 "__libcpp_allocate",
                                                                 "__libcpp_operator_new",
                                                                 "_M_allocate",
                                                                 "_M_allocate_and_copy",
                                                                 "_M_allocate_buckets",
                                                                 "_M_allocate_map",
                                                                 "_M_allocate_node",
                                                                 "_M_allocate_single_bucket_storage",
                                                                 "_M_create",
                                                                 "_M_create_node",
                                                                 "_M_create_nodes",
                                                                 "_M_create_storage",
                                                                 "_M_get_node",
                                                                 "_M_initialize_map",
                                                                 "_S_allocate",
                                                                 "_S_create",
                                                                 "_S_new_page"};
  if (std::find(names.begin(), names.end(), function) != names.end()) return true;
  const auto begins = [function](std::string_view text) { return function.starts_with(text); };
  if (std::any_of(beginnings.begin(), beginnings.end(), begins)) return true;
  if (function.find("std::") == std::string_view::npos && !begins("__gnu_cxx::")) return false;
  const std::string name = short_name(function);
  if (!name.starts_with("std::") && !name.starts_with("__gnu_cxx::")) return false;
  std::string_view last = std::string_view(name).substr(name.rfind(':') + 1);
  if (last.ends_with("<>")) last.remove_suffix(2);
  return std::find(parts_of_std.begin(), parts_of_std.end(), last) != parts_of_std.end();
}

std::string library_text(const StackTable& stacks, FrameId frame) {
  const ModuleId module = stacks.frame(frame).module;
  return module == 0 ? "[no module]" : std::string(base_name(stacks.module(module).path));
}

std::string function_text(const StackTable& stacks, FrameId frame, const FrameName* name) {
  if (frame == 0) return "[cut]";
  if (name != nullptr && !name->function.empty()) return std::string(name->function);
  const std::uint64_t address = stacks.frame(frame).address;
  const ModuleId module = stacks.frame(frame).module;
  if (module == 0) return output::hex(address);
  return library_text(stacks, frame) + "+0x" + output::hex(address - stacks.module(module).bias);
}

std::string part_text(std::string_view function) {
  std::string text(function);
  for (char& c : text) {
    if (c == ';') c = ':';
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  }
  return text.empty() ? "?" : text;
}

struct NamePattern::Compiled {
  explicit Compiled(const std::string& text) {
    const int error = regcomp(&regex, text.c_str(), REG_EXTENDED | REG_NOSUB);
    if (error == 0) return;
    std::array<char, 256> reason{};
    regerror(error, &regex, reason.data(), reason.size());
    throw std::invalid_argument(reason.data());
  }
  ~Compiled() { regfree(&regex); }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  regex_t regex{};
  std::unordered_map<std::string_view, bool> known;  // by name
};

NamePattern::NamePattern(const std::string& text) {
  if (!text.empty()) compiled_ = std::make_unique<Compiled>(text);
}

NamePattern::~NamePattern() = default;

bool NamePattern::matches(std::string_view name) {
  if (compiled_ == nullptr || name.empty()) return false;
  const auto [at, is_new] = compiled_->known.try_emplace(name, false);
  if (is_new) at->second = regexec(&compiled_->regex, std::string(name).c_str(), 0, nullptr, 0) == 0;
  return at->second;
}

Labels::Labels(const StackTable& stacks, Key key, const std::string& skipped, const std::string& hidden)
    : stacks_(stacks), key_(key), skipped_(skipped), hidden_(hidden), by_frame_(stacks.frame_count()) {}

bool Labels::is_skipped(std::string_view function) {
  return is_allocation_function(function) || skipped_.matches(function);
}

std::span<const Label> Labels::of_frame(FrameId frame) {
  assert(frame < by_frame_.size());
  if (by_frame_[frame]) return *by_frame_[frame];
  std::vector<Label>& labels = by_frame_[frame].emplace();
  const auto add_label = [&](const FrameName* name) {
    const bool has_line = name != nullptr && !name->file.empty() && name->line != 0;
    std::string text;
    if (frame == 0)
      text = "[cut]";
    else if (key_ == Key::library)
      text = library_text(stacks_, frame);
    else if (key_ == Key::line && has_line)
      text = std::string(name->file) + ":" + std::to_string(name->line);
    else
      text = function_text(stacks_, frame, name);
    const bool is_function = key_ == Key::function && frame != 0;
    const std::string library = is_function ? stacks_.module(stacks_.frame(frame).module).path : "";
    const auto index = static_cast<std::uint32_t>(name == nullptr ? 0 : name - stacks_.names(frame).data());
    labels.push_back({intern(text, library), name != nullptr && is_skipped(name->function), index});
  };
  const std::span<const FrameName> names = stacks_.names(frame);
  for (const FrameName& name : names) {
    if (!hidden_.matches(name.function)) add_label(&name);
  }
  if (names.empty()) add_label(nullptr);
  return labels;
}

LabelId Labels::intern(const std::string& text, const std::string& library) {
  const auto id = static_cast<LabelId>(texts_.size());
  const auto [found, is_new] = ids_.try_emplace(text + '\0' + library, id);
  if (!is_new) return found->second;
  texts_.push_back(text);
  libraries_.push_back(library);
  own_lengths_.push_back(text.size());
  const LabelId first = first_ids_.try_emplace(text, id).first->second;
  if (first == id) return id;
  for (const LabelId each : {first, id}) {
    if (libraries_[each].empty() || texts_[each].size() != own_lengths_[each]) continue;
    texts_[each] += " [" + std::string(base_name(libraries_[each])) + "]";
  }
  return id;
}

}  // namespace cmt::analysis
