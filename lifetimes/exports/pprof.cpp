// Chooses the locations of each stack, by the rules of charging, and writes them as a profile of pprof.

#include "lifetimes/exports/pprof.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <ctime>
#include <deque>
#include <optional>

#include "analysis/stacks/labels.h"
#include "analysis/stacks/stack_tree.h"
#include "libcmt/pprof/profile_message.h"
#include "toolkit/symbols/name_frames.h"

namespace cmt::lifetimes {

using namespace analysis;

namespace {

using pprof::ProfileMessage;

/// Returns a time of the trace as nanoseconds since 1970; empty if 64 bits cannot represent it.
std::optional<std::int64_t> time_ns_of(std::time_t start, std::uint64_t since_start_ns) {
  constexpr std::int64_t second_ns = 1'000'000'000;
  std::int64_t start_ns = 0, time_ns = 0;
  if (__builtin_mul_overflow(std::int64_t{start}, second_ns, &start_ns)) return std::nullopt;
  if (__builtin_add_overflow(start_ns, since_start_ns, &time_ns)) return std::nullopt;
  return time_ns;
}

class PprofWriter {
 public:
  PprofWriter(const StackTable& stacks, const ChargeRule& charges, const std::string& hidden,
              const std::function<void(std::string_view)>& write)
      : stacks_(stacks),
        allocation_functions_(charges),
        hidden_(hidden),
        handing_on_from_(charges.handing_on_from),
        message_(write),
        has_location_(2 * std::size_t{stacks.frame_count()}) {}

  void put_sample_types(std::uint64_t sampling_interval);
  void put_samples(const Uses& uses);
  void put_locations();
  /// Writes the mappings that the locations refer to. The program's own module is the first, as viewers expect it.
  void put_mappings(std::string_view program);
  void put_facts(const Header& header, const Uses& uses, const std::vector<std::string>& comments);
  void finish() { message_.finish(); }

 private:
  /// The properties that the frames of a module have.
  struct Symbols : ProfileMessage::Symbols {
    bool is_used = false;
  };

  // The numbers of locations begin at 1, in three ranges. The location of each frame comes first, with the frame's
  // number plus 1. One location for all stacks that are not known follows. Then comes the location of each frame
  // without the allocation functions that are inlined at its inner end, or, if it has no others, with its outermost.
  std::uint64_t location(std::size_t index) {
    assert(index < has_location_.size());
    return has_location_[index] = true, index + 1;
  }
  std::uint64_t location_of(FrameId frame) { return location(frame); }
  std::uint64_t unknown_location() { return location(stacks_.frame_count()); }
  std::uint64_t caller_location_of(FrameId frame) { return location(stacks_.frame_count() + std::size_t{frame}); }

  bool is_hidden(std::span<const FrameName> names);
  std::size_t first_caller(FrameId frame);
  std::size_t first_charged(FrameId frame);
  std::vector<std::uint64_t> locations_of(StackId stack, const std::vector<std::size_t>& first_callers);
  void put_location(FrameId frame, std::uint64_t id, std::size_t first_name);

  const StackTable& stacks_;
  AllocationFunctions allocation_functions_;
  NamePattern hidden_;
  ModuleId handing_on_from_;
  ProfileMessage message_;
  std::vector<bool> has_location_;  // by its number less 1
  std::vector<Symbols> symbols_ = std::vector<Symbols>(stacks_.module_count());
};

void PprofWriter::put_sample_types(std::uint64_t sampling_interval) {
  for (const char* const what : {"alloc", "inuse", "peak"}) {
    message_.put_sample_type(std::string(what) + "_objects", "count");
    message_.put_sample_type(std::string(what) + "_space", "bytes");
  }
  if (sampling_interval == 0) message_.put_sample_type("temporary_objects", "count");
  message_.put_period("space", "bytes", std::max<std::uint64_t>(sampling_interval, 1));  // 1: all blocks were counted
  message_.put_default_type("peak_space");
}

bool PprofWriter::is_hidden(std::span<const FrameName> names) {
  return std::all_of(names.begin(), names.end(),
                     [this](const FrameName& each) { return hidden_.matches_function(each.function); });
}

/// Returns the index of the first function of a frame that is neither hidden nor an allocation function. Two cases
/// differ:
///
/// - no allocation function is before it, or the frame has no names: 0;
/// - there is no such function: the number of names.
std::size_t PprofWriter::first_caller(FrameId frame) {
  const std::span<const FrameName> names = stacks_.names(frame);
  bool is_after_allocation = false;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (hidden_.matches_function(names[i].function)) continue;
    if (!allocation_functions_.has(stacks_, frame, names[i])) return is_after_allocation ? i : 0;
    is_after_allocation = true;
  }
  return names.size();
}

/// Returns a stack without the allocation functions at its inner end. The option drop_frames of pprof, a pattern
/// for such functions, would not do: it also drops all functions that a matching function called. Example:
/// std::_Rb_tree::_M_create_node gets memory for a node. It also calls the constructor of the element, whose
/// allocations are its own.
std::vector<std::uint64_t> PprofWriter::locations_of(StackId stack, const std::vector<std::size_t>& first_callers) {
  std::vector<std::uint64_t> locations;
  std::optional<FrameId> outermost;
  for (StackId at = stack; at != 0; at = stacks_.node(at).parent) {
    if (locations.size() == pprof::locations_max) {
      locations.push_back(location_of(0));
      break;
    }
    const FrameId frame = stacks_.node(at).frame;
    const std::span<const FrameName> names = stacks_.names(frame);
    const bool hands_on =
        names.empty() ? allocation_functions_.has(stacks_, frame, {}) : first_callers[frame] == names.size();
    const bool is_left_out = locations.empty() ? hands_on : !names.empty() && is_hidden(names);
    if (names.empty() || !is_hidden(names)) outermost = frame;
    if (is_left_out) continue;
    const bool is_cut = locations.empty() && first_callers[frame] != 0;
    locations.push_back(is_cut ? caller_location_of(frame) : location_of(frame));
  }
  if (locations.empty()) locations.push_back(outermost ? caller_location_of(*outermost) : unknown_location());
  return locations;
}

void PprofWriter::put_samples(const Uses& uses) {
  std::vector<std::size_t> first_callers(stacks_.frame_count());
  for (const FrameId frame : StackTree(stacks_, uses).frames()) first_callers[frame] = first_caller(frame);
  for (const Uses::Entry& entry : uses.entries) {
    const Use& use = entry.use;
    const std::array<std::uint64_t, 7> values{use.allocated.blocks, use.allocated.bytes, use.leaked.blocks,
                                              use.leaked.bytes,     use.peak.blocks,     use.peak.bytes,
                                              use.temporary};
    const std::span<const std::uint64_t> known(values.data(), values.size() - (use.temporary == unknown));
    if (std::all_of(known.begin(), known.end(), [](std::uint64_t value) { return value == 0; })) continue;
    message_.put_sample(locations_of(entry.key, first_callers), known);
  }
}

/// Returns the index of the first function of a frame that a stack may be charged to. If the frame has only allocation
/// functions, the stack has no others, and this is the outermost one.
std::size_t PprofWriter::first_charged(FrameId frame) {
  const std::span<const FrameName> names = stacks_.names(frame);
  const std::size_t first = first_caller(frame);
  if (first != names.size() || names.empty()) return names.empty() ? 0 : first;
  std::size_t last = names.size() - 1;
  while (hidden_.matches_function(names[last].function)) --last;
  return last;
}

void PprofWriter::put_locations() {
  const std::size_t frames = stacks_.frame_count();
  for (FrameId frame = 1; frame < frames; ++frame) {
    if (has_location_[frame]) put_location(frame, location_of(frame), 0);
    if (has_location_[frames + frame]) put_location(frame, caller_location_of(frame), first_charged(frame));
  }
  const FrameName cut{.function = "[cut]", .file = {}}, unknown{.function = "[unknown]", .file = {}};
  if (has_location_[0]) message_.put_location(1, {}, {&cut, 1});
  if (has_location_[frames]) message_.put_location(unknown_location(), {}, {&unknown, 1});
}

/// Writes a location with the functions of a frame from the index `first_name` on.
void PprofWriter::put_location(FrameId frame, std::uint64_t id, std::size_t first_name) {
  assert(first_name <= stacks_.names(frame).size());
  const Frame& place = stacks_.frame(frame);
  const ModuleId module = stacks_.module(place.module).path.empty() ? 0 : place.module;
  const std::span<const FrameName> names = stacks_.names(frame).subspan(first_name);
  Symbols& symbols = symbols_[module];
  symbols.is_used = true;
  symbols.inlined |= names.size() > 1;
  std::deque<std::string> functions;  // whose text is made here
  std::vector<FrameName> lines;
  for (const FrameName& each : names) {
    symbols.functions |= !each.function.empty();
    symbols.files |= !each.file.empty();
    symbols.lines |= each.line != 0;
    const bool is_known = !each.function.empty() || !each.file.empty();
    if (!is_known || hidden_.matches_function(each.function)) continue;
    lines.push_back({functions.emplace_back(function_text(stacks_, frame, &each)), each.file, each.line});
  }
  message_.put_location(id, ProfileMessage::Place{module, place.instruction()}, lines);
}

void PprofWriter::put_mappings(std::string_view program) {
  const auto is_program = [&](ModuleId id) {
    return !program.empty() && pprof::base_name(stacks_.module(id).path) == pprof::base_name(program);
  };
  for (const bool wanted : {true, false}) {
    for (ModuleId id = 1; id < stacks_.module_count(); ++id) {
      const bool is_needed = symbols_[id].is_used || (wanted && id < handing_on_from_);
      if (is_program(id) == wanted && is_needed) message_.put_mapping(id, stacks_.module(id), symbols_[id]);
    }
  }
}

void PprofWriter::put_facts(const Header& header, const Uses& uses, const std::vector<std::string>& comments) {
  const bool has_times = uses.end_time_ns != unknown && uses.begin_time_ns <= uses.end_time_ns;
  const auto start = symbols::start_of(header);
  if (const auto time_ns = start ? time_ns_of(*start, has_times ? uses.begin_time_ns : 0) : std::nullopt)
    message_.put_time(*time_ns);
  if (has_times) message_.put_duration(uses.end_time_ns - uses.begin_time_ns);
  for (const std::string& comment : comments) message_.put_comment(comment);
}

}  // namespace

void write_pprof(const StackTable& stacks, const Uses& uses, const ChargeRule& charges, const std::string& hidden,
                 const Header& header, const std::vector<std::string>& comments,
                 const std::function<void(std::string_view)>& write) {
  PprofWriter profile(stacks, charges, hidden, write);
  profile.put_sample_types(header.sampled());
  profile.put_samples(uses);
  profile.put_locations();
  profile.put_mappings(header.find("program").value_or(""));
  profile.put_facts(header, uses, comments);
  profile.finish();
}

}  // namespace cmt::lifetimes
