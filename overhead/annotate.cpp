// Annotates a trace with neighbours, gaps and pages, as annotate.h describes.
#include "overhead/annotate.h"

#include <string_view>
#include <vector>

#include "analysis/places/placed_blocks.h"
#include "libcmt/heap/address_index.h"
#include "libcmt/heap/clock.h"
#include "libcmt/heap/live_totals.h"
#include "overhead/forms.h"
#include "toolkit/trace/annotate_lines.h"

namespace cmt::overhead {

using namespace analysis;
using heap::gap;
using heap::Neighbourhood;
using heap::own_pages;
using heap::PlacedBlock;
using trace::AnnotatedText;

namespace {

constexpr std::uint64_t removed = -1;
constexpr int huge_page_shift = 21;

class Annotator {
 public:
  /// The annotation of the end or the begin of a block; a realloc has two. `size` and `age` are of a block that ends.
  struct Note {
    std::uint64_t size = 0;
    std::uint64_t age = unknown_block;
    std::uint64_t prev = 0;  // address; 0: there is none
    std::uint64_t next = 0;
    std::int64_t gap_before = -1;
    std::int64_t gap_after = -1;
    std::uint64_t pages = 0;  // pages that no other block is on
    std::uint64_t huge_pages = 0;
    heap::LiveTotals totals{};  // after the end or begin
    std::uint64_t totals_pages = 0, totals_huge_pages = 0;
  };

  Annotator(command::Complaints& complaints, const trace::Options& options, int page_shift, bool counts_huge_pages)
      : page_shift_(page_shift),
        counts_huge_pages_(counts_huge_pages),
        shows_totals_(options.totals),
        age_unit_(options.clock),
        complaints_(complaints),
        clock_(options.clock) {}

  void fetch(const Event& event, bool is_near) {
    if (live_.is_cached()) return;
    if (is_near)
      live_.prefetch_blocks(event.ends_block() ? event.old_address : event.address);
    else
      live_.prefetch_page(event.ends_block() ? event.old_address : event.address);
  }

  void note(const Event& event, std::vector<Note>& notes) {
    clock_.advance_to(event);
    const bool ends = event.ends_block();
    const bool makes = event.makes_block();
    if (!ends && !makes) return;
    require_addresses(event, complaints_);
    if (ends) note_end(event, notes.emplace_back());
    if (makes) note_begin(event, notes.emplace_back());
  }

  void write(trace::AnnotatedText& out, const Event& event, const Note*& note) const {
    const bool ends = event.ends_block();
    const bool makes = event.makes_block();
    if (!ends && !makes) return;
    out.begin_annotation();
    if (ends) write_end(out, event, *note++);
    if (ends && makes) out.text("; ");
    if (makes) {
      write_neighbours(out, *note);
      write_pages(out, {.address = event.address, .size = event.bytes()}, *note++, ", ", " more");
    }
    if (shows_totals_)
      write_totals(out, note[-1]);
    else if (makes)
      out.text(" ");
  }

  std::vector<PlacedBlock> leaks() const {
    std::vector<PlacedBlock> leaks;
    leaks.reserve(live_.size());
    live_.for_each([&](const PlacedBlock& block) { leaks.push_back(block); });
    return leaks;
  }
  const heap::Clock& clock() const { return clock_; }

 private:
  static constexpr std::uint64_t unknown_block = unknown;  // no block is as old

  void note_end(const Event& event, Note& note) {
    Neighbourhood& found = found_;
    if (!live_.erase(event.old_address, found)) {
      if (first_tag_.is_made_here(event.old_tag)) {
        complaints_.add("block " + block_text(event.old_address, event.old_tag) + " is ended but not live");
      }
      return note_totals(note);
    }
    if (found.block.tag != event.old_tag) {
      complaints_.add("block " + block_text(event.old_address, event.old_tag) + " is ended where " +
                      block_text(found.block) + " is live");
    }
    count(found, removed);
    note.size = found.block.size;
    note.age = clock_.now() - found.block.born;
    note_place(found, note);
  }

  void note_begin(const Event& event, Note& note) {
    first_tag_.note(event.tag);
    clock_.count_allocated(event.bytes());
    Neighbourhood& found = found_;
    found.block.address = event.address;
    found.block.size = event.bytes();
    found.block.born = clock_.now();
    found.block.tag = event.tag;
    insert_block(live_, found, [&](const Neighbourhood& old) {
      complaints_.add("block " + block_text(found.block) + " is made where " + block_text(old.block) + " is live");
      count(old, removed);
    });
    check_overlap(found);
    count(found, 1);
    note_place(found, note);
  }

  void note_place(const Neighbourhood& found, Note& note) const {
    note.prev = found.prev.address;
    note.next = found.next.address;
    if (note.prev != 0) note.gap_before = gap(found.prev, found.block);
    if (note.next != 0) note.gap_after = gap(found.block, found.next);
    note.pages = own_pages(found, page_shift_);
    if (counts_huge_pages_) note.huge_pages = own_pages(found, huge_page_shift);
    note_totals(note);
  }

  void note_totals(Note& note) const {
    if (!shows_totals_) return;
    note.totals = totals_;
    note.totals_pages = pages_;
    note.totals_huge_pages = huge_pages_;
  }

  /// Adds a block to the totals `times` times: 1, or -1 to remove it. Sums wrap.
  void count(const Neighbourhood& found, std::uint64_t times) {
    if (!shows_totals_) return;
    totals_.bytes += times * found.block.size;
    totals_.blocks += times;
    pages_ += times * own_pages(found, page_shift_);
    if (counts_huge_pages_) huge_pages_ += times * own_pages(found, huge_page_shift);
  }

  void check_overlap(const Neighbourhood& found) {
    const auto overlap = [](const auto& low, const auto& high) {
      return low.address != 0 && high.address != 0 && low.size != 0 && low.last() >= high.address;
    };
    if (overlap(found.prev, found.block)) {
      complaints_.add("block " + block_text(found.block) + " begins inside " + block_text(found.prev));
    }
    if (overlap(found.block, found.next)) {
      complaints_.add("block " + block_text(found.block) + " overlaps " + block_text(found.next));
    }
  }

  void write_end(AnnotatedText& out, const Event& event, const Note& note) const {
    if (note.age == unknown_block) return out.text("unknown block");
    out.block_age(note.size, note.age, age_unit_);
    out.text(" ago, ");
    write_neighbours(out, note);
    write_pages(out, {.address = event.old_address, .size = note.size}, note, "-", " fewer");
  }

  static void write_neighbours(AnnotatedText& out, const Note& note) {
    out.text("prev ");
    out.hex(note.prev);
    out.text(", gap ");
    out.signed_decimal(note.gap_before);
    out.text(", next ");
    out.hex(note.next);
    out.text(", gap ");
    out.signed_decimal(note.gap_after);
  }

  void write_pages(AnnotatedText& out, const PlacedBlock& block, const Note& note, std::string_view between,
                   std::string_view change) const {
    out.text(", pages ");
    write_page_range(out, block, page_shift_, note.pages, between);
    out.text(change);
    out.text(" pages");
    if (!counts_huge_pages_) return;
    out.text(", huge pages ");
    write_page_range(out, block, huge_page_shift, note.huge_pages, between);
    out.text(change);
  }

  /// "[8508041, 8508041], 0": the first and the last page, and the number of those that are the block's own.
  static void write_page_range(AnnotatedText& out, const PlacedBlock& block, int shift, std::uint64_t own,
                               std::string_view between) {
    const std::uint64_t first = block.address >> shift, last = block.last() >> shift;
    out.text("[");
    const std::string_view first_page = out.decimal(first);
    out.text(between);
    if (first == last)
      out.text(first_page);
    else
      out.decimal(last);
    out.text("], ");
    out.decimal(own);
  }

  void write_totals(AnnotatedText& out, const Note& note) const {
    out.text(", ");
    out.live_totals(note.totals.bytes, note.totals.blocks);
    out.text(" on ");
    out.decimal(note.totals_pages);
    out.text(" pages");
    if (!counts_huge_pages_) return;
    out.text(", ");
    out.decimal(note.totals_huge_pages);
    out.text(" huge pages");
  }

  int page_shift_;
  bool counts_huge_pages_, shows_totals_;
  heap::Clock::Unit age_unit_;

  // note() changes these with every event. They are in lines of the cache that write() does not read.
  alignas(128) command::Complaints& complaints_;
  heap::Clock clock_;
  heap::AddressIndex live_;
  Neighbourhood found_;  // of the block that begins or ends: to make one for each would cost as much as to find it
  heap::LiveTotals totals_;
  std::uint64_t pages_ = 0;       // that live blocks are on
  std::uint64_t huge_pages_ = 0;  // the same, of 2 MiB
  trace::FirstTag first_tag_;
};

}  // namespace

void annotate_trace(const trace::Options& options, int page_shift, bool huge_pages) {
  trace::annotate_lines<Annotator>(options, page_shift, huge_pages);
}

}  // namespace cmt::overhead
