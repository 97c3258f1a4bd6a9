// Turns the names and values in a call's label into numbers, so that the worker gets only numbers.
#include "cmtreplay/plan/give_back.h"

#include <malloc.h>

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace cmt::replay {
namespace {

constexpr std::array<std::pair<std::string_view, int>, 9> parameters{{{"M_MXFAST", M_MXFAST},
                                                                      {"M_TRIM_THRESHOLD", M_TRIM_THRESHOLD},
                                                                      {"M_TOP_PAD", M_TOP_PAD},
                                                                      {"M_MMAP_THRESHOLD", M_MMAP_THRESHOLD},
                                                                      {"M_MMAP_MAX", M_MMAP_MAX},
                                                                      {"M_CHECK_ACTION", M_CHECK_ACTION},
                                                                      {"M_PERTURB", M_PERTURB},
                                                                      {"M_ARENA_TEST", M_ARENA_TEST},
                                                                      {"M_ARENA_MAX", M_ARENA_MAX}}};

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && stop == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// The two parts of "NAME=VALUE". The second is empty if the label has no value.
std::pair<std::string_view, std::string_view> parts_of(std::string_view label) {
  const auto equals = label.rfind('=');
  if (equals == label.npos) return {label, {}};
  return {label.substr(0, equals), label.substr(equals + 1)};
}

Step step_of_call(give_back call, std::uint64_t first, std::uint64_t second) {
  Step step(Outcome::give_back);
  for (const std::uint64_t word : {operation_word(operation_control, control_give_back, call), first, second})
    step.storage[step.size++] = word;
  return step;
}

Step mallopt_step(std::string_view label) {
  const auto [name, value_text] = parts_of(label);
  const auto value = number_of(value_text);
  for (const auto& [known, parameter] : parameters) {
    if (name == known && value)
      return step_of_call(give_back_mallopt, static_cast<std::uint32_t>(parameter), static_cast<std::uint64_t>(*value));
  }
  return Step(Outcome::give_back_left_out);
}

/// The number that a name has at the # of a pattern. Returns 0 if the pattern has no #, and nothing if the name does
/// not fit it.
std::optional<std::uint32_t> arena_in(std::string_view name, std::string_view pattern) {
  const auto place = pattern.find('#');
  if (place == pattern.npos) return name == pattern ? std::optional(0U) : std::nullopt;
  const std::string_view before = pattern.substr(0, place), after = pattern.substr(place + 1);
  if (!name.starts_with(before) || !name.ends_with(after) || name.size() <= before.size() + after.size())
    return std::nullopt;
  const auto arena = number_of(name.substr(place, name.size() - before.size() - after.size()));
  return arena && *arena >= 0 && *arena <= UINT32_MAX ? std::optional(static_cast<std::uint32_t>(*arena))
                                                      : std::nullopt;
}

Step mallctl_step(std::string_view label) {
  const auto [name, value_text] = parts_of(label);
  const auto value = number_of(value_text);
  for (std::uint64_t index = 0; index < mallctl_count && (value || value_text.empty()); ++index) {
    const auto arena = arena_in(name, mallctl_names[index]);
    if (!arena) continue;
    const std::uint64_t call = index | std::uint64_t{value.has_value()} << 8 | std::uint64_t{*arena} << 16;
    return step_of_call(give_back_mallctl, call, static_cast<std::uint64_t>(value.value_or(0)));
  }
  return Step(Outcome::give_back_left_out);
}

}  // namespace

Step give_back_step(const Event& event) {
  if (event.kind == Kind::malloc_trim) return step_of_call(give_back_trim, event.size, 0);
  if (event.kind == Kind::mallopt) return mallopt_step(event.label);
  if (event.kind == Kind::mallctl) return mallctl_step(event.label);
  return Step();
}

}  // namespace cmt::replay
