#include <utility>

#include "libcmt/block_table.h"
#include "trace2cmt/filters/filter.h"

namespace trace2cmt {
namespace {

/// The live blocks at a moment of a trace, each as it was allocated.
class LiveAllocations {
 public:
  void follow(const cmt::Event& event) {
    if (event.tag != 0 && event.tag <= newest_) return;  // contradicts the events before, as cmt::Writer::add() has it
    if (event.ends_block()) blocks_.erase(event.old_tag);
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
    for (const cmt::Tag tag : tags) emit(*blocks_.find(tag));
  }

 private:
  cmt::BlockTable<cmt::Event> blocks_;
  cmt::Tag newest_ = 0;
};

class SliceFilter : public Filter {
 public:
  explicit SliceFilter(cmt::annotate::SliceRange range) : progress_(std::move(range)) {}

  void change_header(cmt::Header& header) override {
    progress_.check(header);
    const std::string& text = progress_.range().text;
    for (auto& [key, value] : header.metadata) {
      if (key == "slice") return void(value += " " + text);
    }
    header.metadata.emplace_back("slice", text);
  }

  void filter(const cmt::Event& event, const Emit& emit) override {
    if (place_ == Place::behind) return;
    const Place before = std::exchange(place_, progress_.next(event));
    if (before == Place::before && place_ != Place::before) begin(emit);
    if (place_ == Place::behind) return;
    has_events_ = true;
    if (event.time_ns != cmt::unknown) last_time_ns_ = event.time_ns;
    place_ == Place::inside ? emit(event) : before_.follow(event);
  }

  void finish(const Emit& emit) override {
    if (!progress_.finish()) begin(emit);
  }

  bool done() const override { return place_ == Place::behind; }

 private:
  using Place = cmt::annotate::SliceProgress::Place;

  void begin(const Emit& emit) {
    if (!has_events_) return;
    std::exchange(before_, {}).emit_all(emit);
    const std::string label = "slice " + progress_.range().text;
    emit({.kind = cmt::Kind::mark, .time_ns = last_time_ns_, .label = label});
  }

  cmt::annotate::SliceProgress progress_;
  Place place_ = Place::before;
  bool has_events_ = false;
  std::uint64_t last_time_ns_ = cmt::unknown;
  LiveAllocations before_;
};

}  // namespace

std::unique_ptr<Filter> make_slice_filter(cmt::annotate::SliceRange range) {
  return std::make_unique<SliceFilter>(std::move(range));
}

}  // namespace trace2cmt
