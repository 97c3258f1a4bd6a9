// Annotates a trace with sizes and ages. Another thread than the writing one may note them.
#include "lifetimes/annotate.h"

#include <vector>

#include "analysis/fates/live_blocks.h"
#include "cmt/event.h"
#include "libcmt/heap/live_totals.h"
#include "toolkit/trace/annotate_lines.h"

namespace cmt::lifetimes {
namespace {

class Annotator {
 public:
  /// The annotation of an event that ends a block. If totals are shown, an event that makes a block has one, too.
  struct Note {
    std::uint64_t size = 0;
    std::uint64_t age = unknown_block;
    heap::LiveTotals totals{};  // after the event
  };

  Annotator(command::Complaints& complaints, const trace::Options& options)
      : shows_totals_(options.totals), unit_(options.clock), live_(options.clock, complaints) {}

  void fetch(const Event& event, bool is_near) {
    if (!event.ends_block()) return;
    if (is_near)
      live_.prefetch_block(event.old_tag);
    else
      live_.prefetch(event.old_tag);
  }

  void note(const Event& event, std::vector<Note>& notes) {
    live_.start_event(event);
    const bool ends = event.ends_block();
    const bool makes = event.makes_block();
    Note note;
    if (ends) end_block(event.old_tag, note);
    if (makes) begin_block(event);
    if (!ends && !(makes && shows_totals_)) return;
    note.totals = totals_;
    notes.push_back(note);
  }

  void write(trace::AnnotatedText& out, const Event& event, const Note*& note) const {
    const bool ends = event.ends_block();
    if (!ends && !(shows_totals_ && event.makes_block())) return;
    out.begin_annotation();
    if (ends) write_end(out, *note);
    if (shows_totals_) {
      if (ends) out.text(", ");
      out.live_totals(note->totals.bytes, note->totals.blocks);
    }
    ++note;
  }

  std::vector<heap::PlacedBlock> leaks() const {
    std::vector<heap::PlacedBlock> leaks;
    leaks.reserve(live_.size());
    live_.for_each([&](const Block& block) { leaks.push_back({block.address, block.size, block.born, block.tag, 0}); });
    return leaks;
  }
  const heap::Clock& clock() const { return live_.clock(); }

 private:
  static constexpr std::uint64_t unknown_block = unknown;  // no block is as old

  /// A heap::PlacedBlock without its slop: BlockTable is within its bounds with 32 bytes.
  struct Block {
    Tag tag = 0;
    std::uint64_t size = 0;
    std::uint64_t born = 0;
    std::uint64_t address = 0;
  };

  void end_block(Tag tag, Note& note) {
    const Block* const block = live_.end_block(tag);
    if (block == nullptr) return;
    totals_.remove_block(block->size);
    note.size = block->size;
    note.age = live_.clock().now() - block->born;
  }

  void begin_block(const Event& event) {
    totals_.add_block(event.bytes());
    if (!live_.begin_block(event, {.address = event.address})) {
      totals_.remove_block(live_.replace_block(event, {.address = event.address}).size);
    }
  }

  void write_end(trace::AnnotatedText& out, const Note& note) const {
    if (note.age == unknown_block) return out.text("unknown block");
    out.block_age(note.size, note.age, unit_);
    out.text(" ago");
  }

  bool shows_totals_;
  heap::Clock::Unit unit_;
  analysis::LiveBlocks<Block> live_;
  heap::LiveTotals totals_;
};

}  // namespace

void annotate_trace(const trace::Options& options) { trace::annotate_lines<Annotator>(options); }

}  // namespace cmt::lifetimes
