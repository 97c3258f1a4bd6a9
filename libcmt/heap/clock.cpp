#include "libcmt/heap/clock.h"

namespace cmt::heap {

std::optional<Clock::Unit> Clock::parse(std::string_view name) {
  for (const Unit unit : {Unit::events, Unit::time, Unit::bytes}) {
    if (Clock::name(unit) == name) return unit;
  }
  return std::nullopt;
}

std::string_view Clock::name(Unit unit) {
  switch (unit) {
    case Unit::events:
      return "events";
    case Unit::time:
      return "time";
    case Unit::bytes:
      return "bytes";
  }
  return {};
}

std::string_view Clock::unit_text() const {
  switch (unit_) {
    case Unit::events:
      return "lines";
    case Unit::time:
      return "ns";
    case Unit::bytes:
      return "bytes";
  }
  return {};
}

}  // namespace cmt::heap
