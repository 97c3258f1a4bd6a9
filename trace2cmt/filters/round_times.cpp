// The filter of --time-resolution.

#include <cassert>

#include "trace2cmt/filters/filter.h"

namespace cmt::trace2cmt {
namespace {

class RoundingFilter : public Filter {
 public:
  explicit RoundingFilter(std::uint64_t step_ns) : step_ns_(step_ns) { assert(step_ns != 0); }

  void filter(const cmt::Event& event, const Emit& emit) override {
    if (event.time_ns == cmt::unknown) return emit(event);
    cmt::Event rounded = event;
    rounded.time_ns -= rounded.time_ns % step_ns_;
    emit(rounded);
  }

 private:
  std::uint64_t step_ns_;
};

}  // namespace

std::unique_ptr<Filter> make_rounding_filter(std::uint64_t step_ns) {
  return std::make_unique<RoundingFilter>(step_ns);
}

}  // namespace cmt::trace2cmt
