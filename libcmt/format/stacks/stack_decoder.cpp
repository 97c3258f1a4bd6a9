// Decodes the streams of call stacks. A damaged file can state any number, so each one is checked before it is used.

#include "libcmt/format/stacks/stack_streams.h"

#include <cassert>

namespace cmt::format {
namespace {

constexpr std::uint64_t number_limit = 0xffffffff;

std::uint64_t take_time(Cursor& cursor) {
  const std::uint64_t field = cursor.varint(stack_time_limit + 1, "a module's time");
  return field == 0 ? unknown : field - 1;
}

std::string take_text(Cursor& cursor, std::uint64_t limit, const char* what) {
  return std::string(cursor.bytes(cursor.varint(limit, what)));
}

}  // namespace

void StackDefinitions::take_block(std::string_view stream, std::uint64_t events) {
  assert(called_.size() == table_.frame_count() && last_addresses_.size() == table_.module_count());
  Cursor cursor(stream);
  take_unloaded(cursor);
  for (; !cursor.at_end(); --events) {
    if (events == 0) throw WireError(cursor.offset(), "more stacks than events");
    StackId node = take_attachment(cursor);
    const std::uint64_t start = cursor.offset();
    const std::uint64_t count = cursor.varint(stream.size(), "a stack's number of new nodes");
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t at = cursor.offset();
      const FrameId frame = take_frame(cursor, node);
      if (frame == 0 && node != 0) throw WireError(at, "a cut within a stack");
      const std::uint32_t nodes = table_.node_count();
      if (nodes > nodes_limit_) throw WireError(at, "more than " + std::to_string(nodes_limit_) + " nodes of stacks");
      node = table_.add_node({node, frame});
      if (node != nodes) throw WireError(at, "a node that is there already");
    }
    if (node == 0) throw WireError(start, "a stack without frames");
    stacks_.push_back(node);
  }
}

void StackDefinitions::take_unloaded(Cursor& cursor) {
  for (std::uint64_t count = cursor.varint(); count != 0; --count) {
    const std::uint64_t at = cursor.offset(), module = cursor.varint();
    if (module == 0 || module >= table_.module_count()) throw WireError(at, "a module that is not defined");
    table_.set_unloaded(static_cast<ModuleId>(module), take_time(cursor));
  }
}

StackId StackDefinitions::take_attachment(Cursor& cursor) const {
  const std::uint64_t at = cursor.offset(), newest = table_.node_count() - 1;
  std::uint64_t field = cursor.varint();
  if (field >= attachment_steps) {
    if (field - attachment_steps > newest) throw WireError(at, "a node before the first");
    return static_cast<StackId>(newest - (field - attachment_steps));
  }
  StackId node = stacks_.back();
  for (; field != 0; --field) {
    if (node == 0) throw WireError(at, "more frames go than the last stack has");
    node = table_.node(node).parent;
  }
  return node;
}

FrameId StackDefinitions::take_frame(Cursor& cursor, StackId parent) {
  assert(parent < table_.node_count());
  std::vector<FrameId>& called = called_[table_.node(parent).frame];
  const std::uint64_t at = cursor.offset(), rank = cursor.varint();
  if (rank > called.size()) throw WireError(at, "a frame that this caller does not call");
  if (rank != 0) return called[rank - 1];
  const std::uint64_t distance = cursor.varint();
  if (distance > table_.frame_count()) throw WireError(at, "a frame before the first");
  const FrameId frame = distance == 0 ? define_frame(cursor) : static_cast<FrameId>(table_.frame_count() - distance);
  called_[table_.node(parent).frame].push_back(frame);  // define_frame() may have moved the lists
  return frame;
}

FrameId StackDefinitions::define_frame(Cursor& cursor) {
  const std::uint64_t at = cursor.offset(), field = cursor.varint(), module_field = field >> 1;
  if (module_field > table_.module_count()) throw WireError(at, "a module that is not defined");
  const ModuleId module = module_field == 0 ? define_module(cursor) : static_cast<ModuleId>(module_field - 1);
  std::uint64_t& address = last_addresses_[module];
  address += unzigzag(cursor.varint());
  const std::uint32_t frames = table_.frame_count();
  if (frames == number_limit) throw WireError(at, "too many frames");
  if (table_.add_frame({module, address, (field & 1) != 0}) != frames) {
    throw WireError(at, "a frame that is there already");
  }
  called_.emplace_back();
  return frames;
}

ModuleId StackDefinitions::define_module(Cursor& cursor) {
  Module module;
  module.path = take_text(cursor, module_path_limit, "the length of a module's path");
  module.build_id = take_text(cursor, build_id_limit, "the length of a build id");
  module.begin = cursor.varint();
  module.end = module.begin + cursor.varint();
  module.bias = module.begin - unzigzag(cursor.varint());
  module.loaded_ns = take_time(cursor);
  module.unloaded_ns = take_time(cursor);
  last_addresses_.push_back(module.begin);
  return table_.append_module(module);
}

void StackNumberDecoder::start(std::string_view bytes, const StackDefinitions& definitions, std::size_t known) {
  assert(known < definitions.stacks().size());
  cursor_ = Cursor(bytes);
  definitions_ = &definitions;
  known_ = known;
  last_ = 0;
  if (owner_ == StackOwner::pools && !bytes.empty()) {
    const std::uint64_t others = cursor_.varint();
    if (others >= definitions.stacks().size() - known) throw WireError(0, "stacks that are not defined");
    known_ += others;
  }
  rule_ = bytes.empty() ? 0 : static_cast<unsigned>(cursor_.varint(traits_limit, "the rule of the stacks"));
}

StackId StackNumberDecoder::next() {
  const std::uint64_t at = cursor_.offset(), value = cursor_.varint();
  last_ = value == 0 ? ++known_ : last_ + unzigzag(value - 1);
  const std::span<const StackId> stacks = definitions_->stacks();
  if (value == 0 ? last_ >= stacks.size() : last_ > known_) throw WireError(at, "a stack that is not defined");
  assert(last_ < stacks.size());
  return stacks[last_];
}

void StackNumberDecoder::fill(std::span<Event> events) {
  if (rule_ == 0) return;
  if (owner_ == StackOwner::blocks) {
    for (Event& event : events) event.stack = (traits(event.kind).bits() & rule_) != 0 ? next() : 0;
    return;
  }
  for (Event& event : events) {
    if (is_of_pool(event.kind)) event.stack = (pool_stack_bits(event.kind) & rule_) != 0 ? next() : 0;
  }
}

}  // namespace cmt::format
