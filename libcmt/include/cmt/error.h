/// The exception that the library throws for input that is no valid trace.
#pragma once

#include <stdexcept>
#include <string>

namespace cmt {

/// The input breaks the rules of its format. Errors of the system are std::system_error instead.
class FormatError : public std::runtime_error {
 public:
  FormatError(std::string place, const std::string& what)
      : std::runtime_error(place.empty() ? what : place + ": " + what), place_(std::move(place)) {}

  /// The place in the input: "app.trace:12" of a line, "app.cmt: offset 0x1f3" of a byte.
  const std::string& place() const { return place_; }

 private:
  std::string place_;
};

}  // namespace cmt
