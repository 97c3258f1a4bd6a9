// Renumbers the tags, threads, addresses, times and stacks of each further trace, as inputs.h describes.

#include "trace2cmt/input/inputs.h"

#include <algorithm>
#include <cassert>
#include <limits>

#include "toolkit/command/command_line.h"

namespace cmt::trace2cmt {
namespace {

constexpr std::uint64_t address_step = std::uint64_t{1} << 48;  // the addresses of a process are below
constexpr std::uint64_t last_number = std::numeric_limits<std::uint64_t>::max();

}  // namespace

Inputs::Inputs(const std::vector<std::string>& paths, const From& from, const cmt::ReadOptions& options,
               bool has_samples)
    : open_([from, options](const std::string& path) {
        return open_log(path, from, options, cmt::command::Samples::accepted);
      }),
      is_strict_(options.strict) {
  for (const std::string& path : paths) {
    const cmt::Header& header = files_.emplace_back(File{path, open_(path)}).reader.header();
    if (header.sampled() != 0 && (!has_samples || paths.size() > 1))
      throw cmt::FormatError(cmt::command::input_name(path),
                             "a sampled trace (" + cmt::command::sampling_text(header) + ") " +
                                 (has_samples ? "cannot be joined to others; give it alone"
                                              : "is written as .cmt only, since its samples are not all blocks; "
                                                "cmtreport and lifetimes --by estimate from it"));
  }
}

cmt::Header Inputs::header() const {
  assert(!files_.empty());
  cmt::Header header = files_.front().reader.header();
  for (const File& file : files_) {
    const cmt::Header& other = file.reader.header();
    header.has_header |= other.has_header;
    header.has_addresses |= other.has_addresses;
    header.has_times |= other.has_times;
    header.has_usable |= other.has_usable;
    header.has_stacks |= other.has_stacks;
    std::erase_if(header.metadata, [&](const auto& entry) { return other.find(entry.first) != entry.second; });
  }
  if (header.touched_min() != 0) return header;
  // If the files differ, all files record touched pages from the largest of their sizes on.
  std::uint64_t touched_min = 0;
  for (const File& file : files_) {
    const std::uint64_t its = file.reader.header().touched_min();
    if (its == 0) return header;
    touched_min = std::max(touched_min, its);
  }
  header.metadata.emplace_back("touched_min", std::to_string(touched_min));
  return header;
}

void Inputs::read(const Visit& visit) {
  for (current_ = 0; current_ < files_.size(); ++current_) {
    File& file = files_[current_];
    if (files_.size() > 1 && !begin_file(file, visit)) return;
    for (auto events = file.reader.read(); !events.empty(); events = file.reader.read()) {
      report(file);
      for (in_batch_ = 0; in_batch_ < events.size(); ++in_batch_) {
        if (files_.size() > 1) {
          cmt::Event joined = events[in_batch_];
          if (join(joined) && !visit(joined)) return;
        } else if (!visit(events[in_batch_])) {
          return;
        }
      }
    }
    end_file(file);
  }
  current_ = files_.size() - 1;
}

std::optional<cmt::trace::LateStart> Inputs::start_late(const cmt::trace::SliceRange& range) {
  File& file = files_.front();
  // A keyframe does not have the sampling interval, which a slice states.
  if (files_.size() > 1 || file.path == "-" || is_sampled()) return std::nullopt;
  return cmt::trace::start_late(file.reader, range, [&] { return open_(file.path); });
}

std::optional<cmt::BlockStart> Inputs::skip_damage(std::uint64_t event) {
  cmt::Reader& reader = files_.front().reader;
  std::optional<cmt::BlockStart> found;
  if (files_.size() > 1 || is_sampled()) return found;
  for (const cmt::BlockStart& block : reader.blocks()) {
    if (block.first_event > event) break;
    if (block.keyframe && block.first_event > reader.first_event()) found = block;
  }
  if (found) reader.seek(found->first_event);
  return found;
}

std::vector<cmt::LiveBlock> Inputs::list_live_before(const cmt::BlockStart& keyframe) {
  assert(files_.size() == 1);
  return files_.front().reader.impl().source_->list_live_before(keyframe);
}

void Inputs::end_file(const File& file) {
  if (stack_copy_) stack_copy_->copy_names();
  if (file.reader.truncated()) truncated_.push_back(file.path);
  const bool is_whole = !file.reader.truncated() && file.reader.defects() == 0;
  if (file.reader.first_event() == 0 && is_whole) empty_.push_back(file.path);
}

void Inputs::read_batches(const std::function<void(std::span<const cmt::Event>)>& visit) {
  assert(files_.size() == 1);
  File& file = files_.front();
  for (auto events = file.reader.read(); !events.empty(); events = file.reader.read()) {
    report(file);
    visit(events);
  }
  end_file(file);
}

const cmt::Source* Inputs::booked_source() const {
  const cmt::Source& source = *files_.front().reader.impl().source_;
  return files_.size() == 1 && source.knows_blocks() ? &source : nullptr;
}

bool Inputs::begin_file(const File& file, const Visit& visit) {
  first_tag_ = first_pool_block_ = cmt::unknown;
  tag_base_ = newest_;
  pool_base_ = newest_pool_block_;
  thread_base_ = threads_;
  time_base_ = last_time_ns_;
  if (thread_base_ > std::numeric_limits<std::uint32_t>::max()) {
    throw cmt::FormatError(file.path, "the files before it leave no numbers for its threads");
  }
  // Addresses with a tag in their upper bits, as Android's, are not those of files that were joined before.
  constexpr std::uint64_t steps_max = 4096;
  std::uint64_t steps = current_;
  if (current_ > 0 && last_address_ / address_step < steps_max)
    steps = std::max(steps, last_address_ / address_step + 1);
  address_base_ = steps * address_step;
  begin_stacks(file);
  return visit({.kind = cmt::Kind::mark,
                .thread = static_cast<std::uint32_t>(thread_base_),
                .time_ns = file.reader.header().has_times ? time_base_ : cmt::unknown,
                .label = file.path});
}

void Inputs::begin_stacks(const File& file) {
  const auto move_times = [base = time_base_](cmt::Module& module) {
    if (module.loaded_ns != cmt::unknown) module.loaded_ns += base;
    if (module.unloaded_ns != cmt::unknown) module.unloaded_ns += base;
  };
  stack_copy_.emplace(file.reader.stacks(), joined_stacks_, StackCopy::Changes{move_times, {}});
}

/// Changes an event of a file to the one in the joined trace. Returns false if the event is dropped.
bool Inputs::join(cmt::Event& event) {
  if (event.tag != 0) first_tag_ = std::min(first_tag_, event.tag);
  if (cmt::is_about_pages(event.kind) && current_ > 0 && event.old_tag < first_tag_)
    return false;  // of an unknown block
  if (current_ > 0 && event.old_tag != 0 && event.old_tag < first_tag_) {
    repair(event.tag == 0 ? cmt::Repair::unmatched_free : cmt::Repair::unmatched_realloc);
    if (event.tag == 0) return false;
    event.old_tag = event.old_address = 0;
  }
  if (event.kind == cmt::Kind::pool_malloc) first_pool_block_ = std::min(first_pool_block_, event.pool_block);
  if (current_ > 0 && event.kind == cmt::Kind::pool_free && event.pool_block < first_pool_block_) {
    repair(cmt::Repair::unmatched_free);
    return false;
  }
  if (thread_base_ + event.thread > std::numeric_limits<std::uint32_t>::max()) {
    throw cmt::FormatError(place(), "the files before it leave no number for its thread");
  }
  if (std::max(event.tag, event.old_tag) > last_number - tag_base_ || event.pool_block > last_number - pool_base_)
    throw cmt::FormatError(place(), "the files before it leave no number for its block");
  if (std::max(event.address, event.old_address) > last_number - address_base_)
    throw cmt::FormatError(place(), "the files before it leave no address for its block");
  if (event.tag != 0) event.tag += tag_base_;
  if (event.old_tag != 0) event.old_tag += tag_base_;
  event.thread += static_cast<std::uint32_t>(thread_base_);
  if (event.time_ns != cmt::unknown) event.time_ns += time_base_;
  if (event.pool_block != 0) event.pool_block += pool_base_;
  if (event.address != 0) event.address += address_base_;
  if (event.old_address != 0) event.old_address += address_base_;
  if (event.stack != 0) event.stack = stack_copy_->copy(event.stack);
  assert(event.old_tag == 0 || event.old_tag > tag_base_);
  newest_ = std::max({newest_, event.tag, event.old_tag});
  newest_pool_block_ = std::max(newest_pool_block_, event.pool_block);
  last_address_ = std::max(last_address_, event.address);
  threads_ = std::max(threads_, std::uint64_t{event.thread} + 1);
  if (event.time_ns != cmt::unknown) last_time_ns_ = std::max(last_time_ns_, event.time_ns);
  return true;
}

void Inputs::repair(cmt::Repair kind) {
  if (is_strict_) throw cmt::FormatError(place(), "ends a block that its file did not make");
  repairs_.add(kind);
}

std::string Inputs::place() const { return files_[current_].reader.place(in_batch_); }

cmt::Repairs Inputs::repairs() const {
  cmt::Repairs all = repairs_;
  for (const File& file : files_) all += file.reader.repairs();
  return all;
}

}  // namespace cmt::trace2cmt
