// The worker keeps returned pointers in the order of its operations. The same planner plans the trace again here, and
// so finds the event of each pointer. Only the pointers have to be stored, 8 bytes each.
#include "cmtreplay/report/new_trace.h"

#include <optional>

#include "cmt/writer.h"
#include "toolkit/files/output_file.h"

namespace cmt::replay {
Event Readdresser::readdress(const Event& original) {
  Event event = original;
  const Step step = planner_.plan(original);
  const std::uint64_t pointer = step.keeps_pointer ? next_pointer_() : 0;
  event.address = event.old_address = 0;
  event.usable = unknown;
  rename_old(event, original);
  if (original.makes_block()) rename_new(event, original, pointer);
  return event;
}

void Readdresser::rename_old(Event& event, const Event& original) {
  if (original.old_tag == 0) return;
  const Renamed* const old = original.ends_block() ? blocks_.erase(original.old_tag) : blocks_.find(original.old_tag);
  if (old == nullptr) return;
  event.old_tag = old->new_tag;
  event.old_address = old->address;
}

/// If the allocator refused a realloc, the old block stays in place, and the new tag names that block from now on.
void Readdresser::rename_new(Event& event, const Event& original, std::uint64_t pointer) {
  Renamed renamed{.tag = original.tag, .new_tag = original.tag, .address = pointer};
  if (pointer == 0) {
    event.tag = 0;
    renamed.new_tag = event.bytes() == 0 ? 0 : event.old_tag;
    renamed.address = event.bytes() == 0 ? 0 : event.old_address;
  }
  event.address = pointer;
  blocks_.insert(renamed);
}

static Header header_of_new(const Header& of, const std::string& allocator) {
  Header header = of;
  header.has_addresses = true;
  header.has_usable = false;
  std::erase_if(header.metadata,
                [](const auto& entry) { return entry.first == "touched_min" || entry.first == "allocator"; });
  header.metadata.emplace_back("allocator", allocator);
  return header;
}

void write_new_trace(Reader& reader, std::span<const std::uint64_t> pointers, const std::string& allocator,
                     const NewTraceFile& to) {
  std::optional<files::OutputFile> file;
  const int output = to.path.empty() ? to.output : file.emplace(to.path).fd();
  Readdresser readdresser(
      [next = pointers.begin(), end = pointers.end()]() mutable { return next == end ? 0 : *next++; });
  Writer writer(output, header_of_new(reader.header(), allocator),
                {.format = to.path.ends_with(".cmt") ? Format::cmt : Format::text});
  writer.use_stacks(reader.stacks());
  for (auto events = reader.read(); !events.empty(); events = reader.read()) {
    for (const Event& event : events) {
      if (!names_pages(event.kind)) writer.add(readdresser.readdress(event));
    }
  }
  writer.finish(reader.repairs(), reader.truncated(), reader.stretches());
  if (file) file->commit();
}

}  // namespace cmt::replay
