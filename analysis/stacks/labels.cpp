// Names the functions of frames.
#include "analysis/stacks/labels.h"

#include <regex.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <stdexcept>
#include <utility>

#include "analysis/stacks/function_names/python_frames.h"
#include "analysis/stacks/function_names/short_name.h"
#include "toolkit/output/numbers.h"
#include "toolkit/process/smaps.h"

namespace cmt::analysis {
namespace {

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// Returns the name of a frame's library or package, for --by=library.
std::string group_of_library(const StackTable& stacks, FrameId frame) {
  const std::string& path = stacks.module(stacks.frame(frame).module).path;
  return is_of_python_package(path) ? python_package(path).name : library_text(stacks, frame);
}

/// Returns the library by which functions of one name differ.
std::string library_of_function(const StackTable& stacks, FrameId frame, const FrameName* name) {
  if (is_python(stacks, frame) && name != nullptr) return std::string(name->file);
  return stacks.module(stacks.frame(frame).module).path;
}

std::string_view library_suffix(std::string_view library) {
  return library.ends_with(".py") ? library : base_name(library);
}

/// The name that an expression is compared with. It has words before and after it that the short name lacks, and not
/// the type to which an operator converts.
std::string own_name(std::string_view name) {
  if (has_place(name)) return std::string(name);
  std::string own = short_name(name);
  const std::string_view conversion = "operator ";
  if (const std::size_t at = own.rfind(conversion); at != own.npos) {
    const std::string_view type = std::string_view(own).substr(at + conversion.size());
    if (!type.starts_with("new") && !type.starts_with("delete")) own.resize(at + conversion.size() - 1);
  }
  for (const std::string_view thunk : {"non-virtual thunk to ", "virtual thunk to "}) {
    if (name.starts_with(thunk) && !own.starts_with(thunk)) own.insert(0, thunk);
  }
  if (const std::size_t clone = name.find(" [clone "); clone != name.npos) own += name.substr(clone);
  return own;
}

}  // namespace

std::string library_text(const StackTable& stacks, FrameId frame) {
  const ModuleId module = stacks.frame(frame).module;
  if (is_python(stacks, frame) && !stacks.names(frame).empty())
    return python_package(stacks.names(frame).front().file).name;
  const std::string& path = stacks.module(module).path;
  return path.empty() ? "[no module]" : std::string(base_name(path));
}

std::string function_text(const StackTable& stacks, FrameId frame, const FrameName* name) {
  if (frame == 0) return "[cut]";
  if (name != nullptr && !name->function.empty()) return std::string(name->function);
  const std::uint64_t address = stacks.frame(frame).address;
  const ModuleId module = stacks.frame(frame).module;
  if (stacks.module(module).path.empty()) return output::hex(address);
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
  explicit Compiled(const std::string& text)
      : is_for_own_names(text.find('<') == text.npos && text.find("\\(") == text.npos &&
                         text.find("[(]") == text.npos) {
    const int error = regcomp(&regex, text.c_str(), REG_EXTENDED | REG_NOSUB);
    if (error == 0) return;
    std::array<char, 256> reason{};
    regerror(error, &regex, reason.data(), reason.size());
    throw std::invalid_argument(reason.data());
  }
  ~Compiled() { regfree(&regex); }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  bool matches(const std::string& text) const { return regexec(&regex, text.c_str(), 0, nullptr, 0) == 0; }

  regex_t regex{};
  bool is_for_own_names;
};

NamePattern::NamePattern(const std::string& text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    if (end != begin) compiled_.push_back(std::make_unique<Compiled>(text.substr(begin, end - begin)));
    begin = end + 1;
  }
}

NamePattern::~NamePattern() = default;

bool NamePattern::matches_function(std::string_view name) {
  if (compiled_.empty() || name.empty()) return false;
  const auto [at, is_new] = functions_.try_emplace(name, false);
  if (is_new) {
    const std::string whole(name), own = own_name(name);
    at->second = std::any_of(compiled_.begin(), compiled_.end(), [&](const auto& expression) {
      return expression->matches(expression->is_for_own_names ? own : whole);
    });
  }
  return at->second;
}

bool NamePattern::matches_place(std::string_view text) {
  if (compiled_.empty() || text.empty()) return false;
  const auto [at, is_new] = places_.try_emplace(text, false);
  if (is_new) {
    const std::string whole(text);
    at->second = std::any_of(compiled_.begin(), compiled_.end(),
                             [&](const auto& expression) { return expression->matches(whole); });
  }
  return at->second;
}

bool AllocationFunctions::has(const StackTable& stacks, FrameId frame, const FrameName& name) {
  // The recorder's functions take the place of an interpreter's allocators (cmttrace --pool).
  const auto hands_on = [&] {
    return stacks.frame(frame).module >= handing_on_from_ ||
           process::is_tracer(stacks.module(stacks.frame(frame).module).path) ||
           (is_allocation_function(name.function, name.file) && !is_python(stacks, frame));
  };
  return (!raw_ && hands_on()) || skipped_.matches_function(name.function);
}

Labels::Labels(const StackTable& stacks, Key key, const ChargeRule& charges, const std::string& hidden)
    : stacks_(stacks), key_(key), allocation_functions_(charges), hidden_(hidden), by_frame_(stacks.frame_count()) {}

std::span<const Label> Labels::of_frame(FrameId frame) {
  assert(frame < by_frame_.size());
  if (by_frame_[frame]) return *by_frame_[frame];
  std::vector<Label>& labels = by_frame_[frame].emplace();
  const auto add_label = [&](const FrameName* name) {
    const bool has_line = name != nullptr && !name->file.empty() && name->line != 0;
    const bool is_of_python = name != nullptr && is_python(stacks_, frame);
    std::string text;
    if (frame == 0)
      text = "[cut]";
    else if (key_ == Key::library)
      text = group_of_library(stacks_, frame);
    else if (is_of_python)
      text = python_function(*name, key_ == Key::line);
    else if (key_ == Key::line && has_line)
      text = std::string(name->file) + ":" + std::to_string(name->line);
    else
      text = function_text(stacks_, frame, name);
    const bool is_function = (key_ == Key::function || (key_ == Key::line && is_of_python)) && frame != 0;
    const std::string library = is_function ? library_of_function(stacks_, frame, name) : "";
    const auto index = static_cast<std::uint32_t>(name == nullptr ? 0 : name - stacks_.names(frame).data());
    const bool hands_on = allocation_functions_.has(stacks_, frame, name == nullptr ? FrameName{} : *name);
    labels.push_back({intern(text, library), hands_on, index});
  };
  const std::span<const FrameName> names = stacks_.names(frame);
  for (const FrameName& name : names) {
    if (!hidden_.matches_function(name.function)) add_label(&name);
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
  for (const std::size_t each : {index_of(first), index_of(id)}) {
    if (libraries_[each].empty() || texts_[each].size() != own_lengths_[each]) continue;
    texts_[each] += " [" + std::string(library_suffix(libraries_[each])) + "]";
  }
  return id;
}

}  // namespace cmt::analysis
