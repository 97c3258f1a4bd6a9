#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cmt/header.h"
#include "cmt/reader.h"

namespace cmt {

/// Where the defects of one input are collected: counted, passed on, or thrown.
class DefectLog {
 public:
  explicit DefectLog(const ReadOptions& options) : options_(options) {}

  /// Throws FormatError where the reader is strict.
  void report(const std::string& place, const std::string& what) {
    if (options_.strict) throw FormatError(place, what);
    ++count_;
    if (options_.on_defect) options_.on_defect({place, what});
  }

  std::uint64_t count() const { return count_; }

 private:
  const ReadOptions& options_;
  std::uint64_t count_ = 0;
};

/// One form of trace, as a Reader sees it.
class Source {
 public:
  virtual ~Source() = default;

  /// The next events; empty at the end. They and their labels live until the next call.
  virtual std::span<const Event> read() = 0;

  virtual std::string_view line(std::size_t) const { return {}; }

  const Header& header() const { return header_; }
  const std::optional<Totals>& totals() const { return totals_; }
  bool truncated() const { return truncated_; }
  std::uint64_t repairs() const { return repairs_; }

 protected:
  Header header_;
  std::optional<Totals> totals_;
  bool truncated_ = false;
  std::uint64_t repairs_ = 0;  // that the input states of itself
};

}  // namespace cmt
