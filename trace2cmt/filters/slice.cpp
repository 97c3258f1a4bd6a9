#include <charconv>
#include <utility>

#include "cmt/error.h"
#include "libcmt/block_table.h"
#include "libcmt/heap/touched_pages.h"
#include "toolkit/command/command_line.h"
#include "trace2cmt/filters/filter.h"

namespace trace2cmt {
namespace {

struct SliceBound {
  bool in_time;
  std::uint64_t value;
};

/// "1000" or "1.5s"; nothing where it is neither.
std::optional<SliceBound> parse_bound(std::string_view text) {
  const char* const end = text.data() + text.size();
  std::uint64_t events = 0;
  if (const auto [at, error] = std::from_chars(text.data(), end, events); error == std::errc() && at == end) {
    return SliceBound{false, events};
  }
  const auto nanoseconds = cmt::command::parse_duration(text, "");
  if (!nanoseconds) return std::nullopt;
  return SliceBound{true, static_cast<std::uint64_t>(*nanoseconds)};
}

/// The live blocks at a moment of a trace, each as it was allocated.
class LiveAllocations {
 public:
  void follow(const cmt::Event& event) {
    if (event.tag != 0 && event.tag <= newest_) return;  // contradicts the events before, as cmt::Writer::add() has it
    if (cmt::tells_pages(event.kind)) return follow_run(event);
    if (event.ends_block()) {
      blocks_.erase(event.old_tag);
      pages_.end_block(event.old_tag);
    }
    newest_ = std::max({newest_, event.tag, event.old_tag});
    if (event.tag == 0) return;
    cmt::Event made = event;
    made.old_tag = made.old_address = 0;
    if (cmt::traits(event.kind).releases) {  // a realloc's block is allocated by malloc
      made.kind = cmt::Kind::malloc;
      made.size = event.bytes();
      made.count = 1;
    }
    blocks_.insert(made);
  }

  /// By rising tag.
  void emit_all(const Emit& emit) {
    std::vector<cmt::Tag> tags;
    tags.reserve(blocks_.size());
    blocks_.for_each([&](const cmt::Event& made) { tags.push_back(made.tag); });
    std::sort(tags.begin(), tags.end());
    for (const cmt::Tag tag : tags) {
      const cmt::Event& made = *blocks_.find(tag);
      emit(made);
      emit_runs(made, cmt::Kind::resident, emit);
      emit_runs(made, cmt::Kind::touch, emit);
    }
  }

 private:
  void follow_run(const cmt::Event& run) {
    const cmt::Event* const made = blocks_.find(run.old_tag);
    if (made == nullptr) return;
    pages_.add(run, cmt::heap::bytes_of(run, made->address, made->bytes()), made->bytes());
  }

  /// With the block's time: the time of its touches is not kept.
  void emit_runs(const cmt::Event& made, cmt::Kind kind, const Emit& emit) const {
    const cmt::heap::TouchedPages::Runs* const runs = pages_.find(made.tag);
    if (runs == nullptr) return;
    for (const auto& [begin, run] : *runs) {
      if (run.kind != kind) continue;
      const std::uint64_t pages = (run.end - begin + run.page_size - 1) / run.page_size;
      emit({.kind = kind,
            .thread = made.thread,
            .size = begin,
            .count = run.end == made.bytes() ? 0 : pages,
            .alignment = run.page_size,
            .old_tag = made.tag,
            .old_address = made.address,
            .time_ns = made.time_ns});
    }
  }

  cmt::BlockTable<cmt::Event> blocks_;
  cmt::heap::TouchedPages pages_;
  cmt::Tag newest_ = 0;
};

class SliceFilter : public Filter {
 public:
  explicit SliceFilter(SliceRange range) : range_(std::move(range)) {}

  void change_header(cmt::Header& header) override {
    if (range_.in_time && !header.has_times) {
      throw cmt::FormatError("", "times were not recorded (needed by --slice=" + range_.text + ")");
    }
    for (auto& [key, value] : header.metadata) {
      if (key == "slice") return void(value += " " + range_.text);
    }
    header.metadata.emplace_back("slice", range_.text);
  }

  void filter(const cmt::Event& event, const Emit& emit) override {
    if (done_) return;
    if (!begun_ && (range_.from == 0 || reaches(range_.from, event))) begin(emit);
    done_ = begun_ && range_.to != cmt::unknown && reaches(range_.to, event);
    if (done_) return;
    ++events_;
    if (event.time_ns != cmt::unknown) last_time_ns_ = event.time_ns;
    begun_ ? emit(event) : before_.follow(event);
  }

  void finish(const Emit& emit) override {
    if (begun_) return;
    if (range_.in_time || events_ < range_.from) {
      throw cmt::FormatError("", "the trace ends before --slice=" + range_.text);
    }
    begin(emit);
  }

  bool done() const override { return done_; }

 private:
  /// Whether an event, the next to be counted, lies at or after a bound.
  bool reaches(std::uint64_t bound, const cmt::Event& event) const {
    if (!range_.in_time) return events_ >= bound;
    return event.time_ns != cmt::unknown && event.time_ns >= bound;
  }

  void begin(const Emit& emit) {
    begun_ = true;
    if (events_ == 0) return;
    std::exchange(before_, {}).emit_all(emit);
    const std::string label = "slice " + range_.text;
    emit({.kind = cmt::Kind::mark, .time_ns = last_time_ns_, .label = label});
  }

  SliceRange range_;
  std::uint64_t events_ = 0;
  std::uint64_t last_time_ns_ = cmt::unknown;
  bool begun_ = false;
  bool done_ = false;
  LiveAllocations before_;
};

}  // namespace

std::optional<SliceRange> SliceRange::parse(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view from_text = text.substr(0, colon), to_text = text.substr(colon + 1);
  const auto from = parse_bound(from_text);
  const auto to = parse_bound(to_text);
  if ((!from && !from_text.empty()) || (!to && !to_text.empty()) || (!from && !to)) return std::nullopt;
  if (from && to && (from->in_time != to->in_time || from->value > to->value)) return std::nullopt;
  SliceRange range{.in_time = (from ? *from : *to).in_time, .text = std::string(text)};
  if (from) range.from = from->value;
  if (to) range.to = to->value;
  return range;
}

std::unique_ptr<Filter> make_slice_filter(SliceRange range) { return std::make_unique<SliceFilter>(std::move(range)); }

}  // namespace trace2cmt
