#include "overhead/annotate.h"

#include <charconv>

using cmt::heap::Neighbourhood;
using cmt::heap::PlacedBlock;

namespace {

constexpr int page_shift = 12;

std::uint64_t first_page(const PlacedBlock& block) { return block.address >> page_shift; }
std::uint64_t last_page(const PlacedBlock& block) { return block.last() >> page_shift; }

/// Bytes from the end of one block to the begin of the next; below 0 where they overlap.
std::int64_t gap(const PlacedBlock& low, const PlacedBlock& high) {
  return static_cast<std::int64_t>(high.address - low.address - low.size);
}

/// Pages that no neighbour is on. Only the first can be shared with the one before, and the last with the one behind.
std::uint64_t own_pages(const Neighbourhood& found) {
  std::uint64_t pages = last_page(found.block) - first_page(found.block) + 1;
  if (found.prev.address != 0 && last_page(found.prev) == first_page(found.block)) --pages;
  if (pages > 0 && found.next.address != 0 && first_page(found.next) == last_page(found.block)) --pages;
  return pages;
}

std::string block_text(const PlacedBlock& block) {
  char digits[17];
  const std::string address(digits, std::to_chars(digits, digits + sizeof digits, block.address, 16).ptr);
  return address + "<" + std::to_string(block.tag) + ">";
}

}  // namespace

void OverheadAnnotator::add(const cmt::Event& event, std::string_view line) {
  ++event_;
  const bool ends = event.ends_block();
  const bool makes = event.makes_block();
  if (!ends && !makes) return out_.bare(line);
  need_addresses(event);
  out_.annotate(line);
  if (ends) annotate_end(event);
  if (ends && makes) out_.text("; ");
  if (makes) annotate_begin(event);
  out_.close();
}

void OverheadAnnotator::annotate_end(const cmt::Event& event) {
  const auto found = live_.erase(event.old_address);
  if (!found) {
    out_.text("unknown block");
    if (first_tag_ != 0 && event.old_tag >= first_tag_) {
      complain("block " + block_text({event.old_address, 0, 0, event.old_tag}) + " is ended and not alive");
    }
    return;
  }
  if (found->block.tag != event.old_tag) {
    complain("block " + block_text({event.old_address, 0, 0, event.old_tag}) + " is ended where " +
             block_text(found->block) + " lives");
  }
  out_.decimal(found->block.size);
  out_.text(" bytes, allocated ");
  out_.decimal(event_ - found->block.born);
  out_.text(" lines ago, ");
  append_neighbours(*found);
  append_pages(*found, "-");
  out_.text(" fewer pages");
}

void OverheadAnnotator::annotate_begin(const cmt::Event& event) {
  if (first_tag_ == 0) first_tag_ = event.tag;
  const PlacedBlock block{event.address, event.bytes(), event_, event.tag};
  auto found = live_.insert(block);
  if (!found) {
    complain("block " + block_text(block) + " is made where " + block_text(live_.erase(block.address)->block) +
             " lives");
    found = live_.insert(block);
  }
  check_overlap(*found);
  append_neighbours(*found);
  append_pages(*found, ", ");
  out_.text(" more pages ");
}

void OverheadAnnotator::append_neighbours(const Neighbourhood& found) {
  out_.text("prev ");
  out_.hex(found.prev.address);
  out_.text(", gap ");
  out_.signed_decimal(found.prev.address == 0 ? -1 : gap(found.prev, found.block));
  out_.text(", next ");
  out_.hex(found.next.address);
  out_.text(", gap ");
  out_.signed_decimal(found.next.address == 0 ? -1 : gap(found.block, found.next));
}

void OverheadAnnotator::append_pages(const Neighbourhood& found, std::string_view between) {
  out_.text(", pages [");
  out_.decimal(first_page(found.block));
  out_.text(between);
  out_.decimal(last_page(found.block));
  out_.text("], ");
  out_.decimal(own_pages(found));
}

void OverheadAnnotator::check_overlap(const Neighbourhood& found) {
  const auto overlap = [](const PlacedBlock& low, const PlacedBlock& high) {
    return low.address != 0 && high.address != 0 && low.size != 0 && low.last() >= high.address;
  };
  if (overlap(found.prev, found.block)) {
    complain("block " + block_text(found.block) + " lies in " + block_text(found.prev));
  }
  if (overlap(found.block, found.next)) {
    complain("block " + block_text(found.block) + " reaches into " + block_text(found.next));
  }
}

void OverheadAnnotator::need_addresses(const cmt::Event& event) const {
  if ((event.ends_block() && event.old_address == 0) || (event.makes_block() && event.address == 0)) {
    throw cmt::FormatError(place(), "a block without an address: its neighbours cannot be known");
  }
}

void OverheadAnnotator::complain(const std::string& what) { complaints_.add(place(), what); }
