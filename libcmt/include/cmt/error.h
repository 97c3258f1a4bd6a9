#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace cmt {

/// Input that is not what the format says. The system's errors are std::system_error instead.
class FormatError : public std::runtime_error {
 public:
  FormatError(std::string place, const std::string& what)
      : std::runtime_error(place.empty() ? what : place + ": " + what), place_(std::move(place)) {}

  /// Where: "app.trace:12" for lines, "app.cmt: offset 0x1f3" for bytes.
  const std::string& place() const { return place_; }

 private:
  std::string place_;
};

}  // namespace cmt
