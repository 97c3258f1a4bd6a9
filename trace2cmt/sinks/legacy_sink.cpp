// Writes the .cmt of 2019 in such a way that the replayer of 2019 reads it (legacy_source.h has the bytes). Two limits
// of that replayer matter here:
//
// - Its numbers have four bytes at most, 28 bits. So larger sizes cannot be written. The same is true of a free of a
//   block that more than 268,435,455 tags followed.
// - It refuses a trace that ever frees the very first tag. So the first record steps by 2, and no block has tag 1.
//
// Differences between tags are kept, unless one is too large to be written.

#include <algorithm>
#include <cassert>
#include <vector>

#include "trace2cmt/sinks/plain_calls.h"
#include "trace2cmt/sinks/sink.h"

namespace cmt::trace2cmt {
namespace {

constexpr std::uint64_t number_limit = (1 << 28) - 1;
constexpr std::uint64_t first_step = 2;

class LegacySink : public LedgerSink {
 public:
  LegacySink(int fd, Say say) : output_(fd), say_(std::move(say)) {}

  void finish(const cmt::Repairs&, bool) override {
    output_.flush();
    calls_.report_losses("legacy", say_);
  }

 private:
  /// From tag `from` on, tags in the file are `less` smaller than in the trace.
  struct Shift {
    cmt::Tag from;
    std::uint64_t less;
  };

  void write_event(const cmt::Event& event, const cmt::format::LiveBlock* old) override;
  void put_number(std::uint64_t number);
  std::uint64_t step_to(cmt::Tag tag);
  cmt::Tag tag_in_file(cmt::Tag tag) const;

  BufferedOutput output_;
  Say say_;
  PlainCalls calls_{{.most = number_limit}};
  std::vector<Shift> shifts_;
  cmt::Tag newest_ = 0;  // of the trace
};

void LegacySink::write_event(const cmt::Event& event, const cmt::format::LiveBlock* old) {
  const PlainCall call = calls_.nearest(event, old != nullptr);
  if (call.kind == PlainCall::Kind::none) return;
  std::uint64_t distance = 0;
  if (call.kind != PlainCall::Kind::malloc) distance = tag_in_file(newest_) + 1 - tag_in_file(call.old_tag);
  if (distance > number_limit) {
    calls_.count(Loss::too_old);
    if (call.kind == PlainCall::Kind::free) return;
    distance = 0;
  }
  put_number(call.size);
  put_number(distance);
  if (call.size != 0) put_number(step_to(call.tag));
  output_.flush_if_full();
}

void LegacySink::put_number(std::uint64_t number) {
  assert(number <= number_limit);
  for (; number >= 0x80; number >>= 7) output_.text() += static_cast<char>(number & 0x7f);
  output_.text() += static_cast<char>(number | 0x80);
}

/// Makes `tag` the newest, and returns its distance to the newest before, in the file.
std::uint64_t LegacySink::step_to(cmt::Tag tag) {
  assert(tag > newest_);
  std::uint64_t step = tag - newest_;
  if (shifts_.empty() || step > number_limit) {
    const cmt::Tag before = shifts_.empty() ? 0 : tag_in_file(newest_);
    step = shifts_.empty() ? first_step : 1;
    shifts_.push_back({tag, tag - (before + step)});
  }
  newest_ = tag;
  return step;
}

cmt::Tag LegacySink::tag_in_file(cmt::Tag tag) const {
  const auto after = std::upper_bound(shifts_.begin(), shifts_.end(), tag,
                                      [](cmt::Tag wanted, const Shift& shift) { return wanted < shift.from; });
  assert(after != shifts_.begin());
  return tag - std::prev(after)->less;
}

std::unique_ptr<Sink> make_legacy_sink(SinkSettings settings) {
  return std::make_unique<LegacySink>(settings.fd, std::move(settings.say));
}

}  // namespace

extern const OutputForm legacy_form{"legacy", "a .cmt", make_legacy_sink};

}  // namespace cmt::trace2cmt
