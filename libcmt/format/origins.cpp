// Encodes and decodes the origins of live blocks, column by column.

#include "libcmt/format/origins.h"

#include <bit>
#include <cassert>

namespace cmt::format {
namespace {

constexpr std::uint64_t has_alignment = 1, has_count = 2;
constexpr unsigned kind_at = 2;
constexpr std::size_t columns_of_all = 5;  // that have a number for each block

}  // namespace

void OriginWriter::add(const Event& made, std::uint64_t number, std::span<const OriginRun> runs) {
  const bool counts = traits(made.kind).counts, aligned = made.alignment != 0;
  calls_.put(std::uint64_t{static_cast<std::uint8_t>(made.kind)} << kind_at | (counts ? has_count : 0) |
             (aligned ? has_alignment : 0));
  threads_.put(std::uint64_t{made.thread});
  if (counts) {
    counts_.put(made.count);
    counts_.put(made.size);
  }
  if (aligned) alignments_.put(made.alignment);
  const bool timed = made.time_ns != unknown;
  times_.put(timed ? zigzag(made.time_ns - last_time_ns_) + 1 : 0);
  if (timed) last_time_ns_ = made.time_ns;
  usables_.put(made.usable != unknown ? zigzag(made.usable - made.bytes()) + 1 : 0);
  stacks_.put(number);
  ++index_;
  if (runs.empty()) return;
  ++touched_count_;
  touched_.put(index_ - last_touched_);
  last_touched_ = index_;
  touched_.put(std::uint64_t{runs.size()});
  std::uint64_t end = 0;
  for (const OriginRun& run : runs) {
    touched_.put(std::uint64_t{static_cast<std::uint8_t>(run.kind)});
    touched_.put(run.begin - end);
    touched_.put(run.end - run.begin);
    touched_.put(run.page_size);
    end = run.end;
  }
}

std::string OriginWriter::finish(std::uint64_t time_ns) {
  VarintWriter out;
  out.put(time_ns != unknown ? time_ns + 1 : 0);
  for (VarintWriter* column : {&calls_, &threads_, &counts_, &alignments_, &times_, &usables_, &stacks_})
    out.put(std::string_view(column->take()));
  out.put(touched_count_);
  out.put(std::string_view(touched_.take()));
  return out.take();
}

std::string put_origins(const Origins& origins, const std::function<std::uint64_t(StackId)>& number_of) {
  OriginWriter writer;
  std::span<const OriginRun> left = origins.runs;
  for (const Event& made : origins.blocks) {
    std::size_t count = 0;
    while (count < left.size() && left[count].tag == made.tag) ++count;
    writer.add(made, number_of(made.stack), left.first(count));
    left = left.subspan(count);
  }
  return writer.finish(origins.time_ns);
}

namespace {

/// Decodes the columns, one after the other.
class OriginReader {
 public:
  OriginReader(std::string_view bytes, std::span<const LiveBlock> live) : cursor_(bytes), live_(live) {
    origins_.time_ns = take_time(cursor_.varint());
    if (live.size() > bytes.size() / columns_of_all)
      throw WireError(0, "fewer blocks than the table of live blocks has");
    origins_.blocks.resize(live.size());
  }

  Origins take(std::span<const StackId> stacks) {
    take_calls();
    for (Event& made : origins_.blocks)
      made.thread = static_cast<std::uint32_t>(cursor_.varint(0xffffffff, "a thread"));
    take_counts();
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if ((calls_[i] & has_alignment) != 0) origins_.blocks[i].alignment = cursor_.varint();
    }
    replace_unknown_kinds();
    take_times();
    for (std::size_t i = 0; i < live_.size(); ++i) {
      const std::uint64_t value = cursor_.varint();
      if (value != 0) origins_.blocks[i].usable = live_[i].size + unzigzag(value - 1);
    }
    take_stacks(stacks);
    take_touched();
    if (!cursor_.at_end()) throw WireError(cursor_.offset(), "bytes after the last block");
    return std::move(origins_);
  }

 private:
  static std::uint64_t take_time(std::uint64_t value) { return value != 0 ? value - 1 : unknown; }

  void take_calls() {
    calls_.reserve(live_.size());
    for (std::size_t i = 0; i < live_.size(); ++i) {
      const std::uint64_t at = cursor_.offset();
      const std::uint64_t call = cursor_.varint((kind_limit << kind_at) - 1, "a kind");
      const auto kind = static_cast<Kind>(call >> kind_at);
      const bool is_later = !is_known(kind) && call >> kind_at > static_cast<std::uint64_t>(Kind::mallctl) + 1;
      if (!is_later && (!traits(kind).allocates || traits(kind).releases))
        throw WireError(at, "a kind that makes no block");
      if (!is_later && traits(kind).counts != ((call & has_count) != 0))
        throw WireError(at, "a kind with another count than its own");
      calls_.push_back(call);
      Event& made = origins_.blocks[i];
      made.kind = kind;
      made.tag = live_[i].tag;
      made.address = live_[i].address;
      made.size = live_[i].size;
    }
  }

  void take_counts() {
    assert(calls_.size() == live_.size());
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if ((calls_[i] & has_count) == 0) continue;
      const std::uint64_t at = cursor_.offset();
      Event& made = origins_.blocks[i];
      made.count = cursor_.varint();
      made.size = cursor_.varint();
      if (made.bytes() != live_[i].size) throw WireError(at, "a count and a size that are not the block's");
    }
  }

  /// Replaces unknown kinds as CoreDecoder does for events.
  void replace_unknown_kinds() {
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      Event& made = origins_.blocks[i];
      if (is_known(made.kind)) continue;
      const bool counts = (calls_[i] & has_count) != 0;
      made.kind = counts ? Kind::calloc : made.alignment != 0 ? Kind::aligned_alloc : Kind::malloc;
      if (made.kind != Kind::aligned_alloc) made.alignment = 0;
    }
  }

  void take_times() {
    std::uint64_t time_ns = 0;
    for (Event& made : origins_.blocks) {
      const std::uint64_t value = cursor_.varint();
      if (value != 0) made.time_ns = time_ns += unzigzag(value - 1);
    }
  }

  void take_stacks(std::span<const StackId> stacks) {
    for (Event& made : origins_.blocks) {
      const std::uint64_t at = cursor_.offset();
      const std::uint64_t number = cursor_.varint();
      if (stacks.empty()) continue;
      if (number >= stacks.size()) throw WireError(at, "a stack that is not defined");
      made.stack = stacks[number];
    }
  }

  void take_touched() {
    std::uint64_t index = 0;
    for (std::uint64_t left = cursor_.varint(live_.size(), "the number of touched blocks"); left != 0; --left) {
      const std::uint64_t at = cursor_.offset();
      const std::uint64_t step = cursor_.varint();
      if (step == 0 || step > live_.size() - index) throw WireError(at, "pages of no block");
      index += step;
      const LiveBlock& block = live_[index - 1];
      std::uint64_t end = 0;
      for (std::uint64_t runs = cursor_.varint(); runs != 0; --runs) end = take_run(block, end);
    }
  }

  std::uint64_t take_run(const LiveBlock& block, std::uint64_t before) {
    const std::uint64_t at = cursor_.offset();
    const auto kind = static_cast<Kind>(cursor_.varint(kind_limit - 1, "a kind"));
    const std::uint64_t gap = cursor_.varint(), length = cursor_.varint(), page_size = cursor_.varint();
    if (!names_pages(kind) || !std::has_single_bit(page_size) || length == 0 || gap > block.size - before ||
        length > block.size - before - gap) {
      throw WireError(at, "pages that the block does not have");
    }
    const std::uint64_t begin = before + gap, end = begin + length;
    assert(before <= begin && begin < end && end <= block.size);
    origins_.runs.push_back({block.tag, begin, end, kind, page_size});
    return end;
  }

  Cursor cursor_;
  std::span<const LiveBlock> live_;
  std::vector<std::uint64_t> calls_;
  Origins origins_;
};

}  // namespace

Origins take_origins(std::string_view bytes, std::span<const LiveBlock> live, std::span<const StackId> stacks) {
  return OriginReader(bytes, live).take(stacks);
}

}  // namespace cmt::format
