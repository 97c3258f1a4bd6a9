/// Decides which defects of an input are kept with their texts. All are counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace cmt {

/// The kind of a defect: the words of its message that have no digit. In "expected ...: TEXT", TEXT does not
/// count.
std::uint64_t kind_of_defect(std::string_view what);

/// Decides of which defects a list keeps the texts: the first few, and the first of each kind. A text of bad lines may
/// have millions of defects, and they must not take memory.
class FirstDefects {
 public:
  /// So many defects are kept whatever their kind.
  explicit FirstDefects(std::size_t kept_always = 10) : kept_always_(kept_always) {}

  /// Returns std::nullopt if the next defect is to be appended to the list. Else returns the index of the defect in the
  /// list that counts it: the last one of its kind.
  std::optional<std::size_t> counted_by(std::string_view what);

  void clear() { *this = FirstDefects(kept_always_); }

 private:
  /// An input may quote words without end in its messages. Further kinds are counted with the last of these.
  static constexpr std::size_t kinds_max = 32;

  struct Kind {
    std::uint64_t kind;
    std::size_t last;  ///< index of the last one kept
  };

  std::size_t kept_always_;
  std::size_t kept_ = 0;
  std::vector<Kind> kinds_{};
};

}  // namespace cmt
