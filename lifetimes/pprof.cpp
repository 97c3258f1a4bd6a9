// A profile of pprof is one message of protocol buffers. It contains tables, whose entries name each other by number:
//
//     sample {locations 3 1, values 2 80 ...}     the innermost location first
//
//     location {id 3, mapping 1, address 4011c5, line {function 7, 12}, line {function 2, 30}}     inlined ones first
//
//     function {id 7, name "parse", file "app.cpp"}
//     mapping {id 1, 400000 to 403000, "/usr/bin/app", build id "3f2a"}
//
//     string_table "", "parse", "app.cpp" ...     all texts are numbers of this table
//
// The entries of a table are fields of the outermost message, and may come in any order. So they are written one by
// one, and the texts last.

#include "lifetimes/pprof.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <ctime>
#include <optional>
#include <protozero/buffer_string.hpp>
#include <protozero/pbf_builder.hpp>
#include <unordered_map>
#include <utility>

#include "analysis/stacks/labels.h"
#include "analysis/stacks/stack_tree.h"
#include "libcmt/text/utf8.h"
#include "toolkit/symbols/name_frames.h"

namespace cmt::lifetimes {

using namespace analysis;

namespace {

using Number = protozero::pbf_tag_type;

// The numbers of fields, by message.
enum class ProfileField : Number {
  sample_type = 1,
  sample = 2,
  mapping = 3,
  location = 4,
  function = 5,
  string_table = 6,
  time_nanos = 9,
  duration_nanos = 10,
  period_type = 11,
  period = 12,
  comment = 13,
  default_sample_type = 14
};
enum class ValueTypeField : Number { type = 1, unit = 2 };
enum class SampleField : Number { location_id = 1, value = 2 };
enum class MappingField : Number {
  id = 1,
  memory_start = 2,
  memory_limit = 3,
  filename = 5,
  build_id = 6,
  has_functions = 7,
  has_filenames = 8,
  has_line_numbers = 9,
  has_inline_frames = 10
};
enum class LocationField : Number { id = 1, mapping_id = 2, address = 3, line = 4 };
enum class LineField : Number { function_id = 1, line = 2 };
enum class FunctionField : Number { id = 1, name = 2, system_name = 3, filename = 4 };

/// The locations of a sample. A deeper stack keeps its innermost ones: a sample names each of its locations, so the
/// size of a profile would grow with the square of the depth.
constexpr std::size_t locations_max = 1024;

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string hex_digits(std::string_view bytes) {
  std::string digits;
  for (const char byte : bytes) {
    digits += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4];
    digits += "0123456789abcdef"[static_cast<unsigned char>(byte) & 15];
  }
  return digits;
}

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
        write_(write),
        has_location_(2 * std::size_t{stacks.frame_count()}) {
    text_number("");
  }

  void put_sample_types();
  void put_samples(const Uses& uses);
  void put_locations();
  /// Writes the mappings that the locations refer to. The program's own module is the first, as viewers expect it.
  void put_mappings(std::string_view program);
  void put_facts(const Header& header, const Uses& uses, const std::vector<std::string>& comments);
  void put_texts();

 private:
  /// The properties that the frames of a module have.
  struct Symbols {
    bool is_used = false, functions = false, files = false, lines = false, inlined = false;
  };
  using FunctionId = std::uint64_t;

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
  void put_location(std::uint64_t id, const std::string& function);
  void put_line(protozero::pbf_builder<LocationField>& location, FunctionId function, std::uint32_t line);
  FunctionId function_of(std::string_view name, std::string_view file);
  void put_mapping(ModuleId id);
  void put_value_type(ProfileField field, std::string_view type, std::string_view unit);

  /// Returns the number of a text. Characters that are no UTF-8 or that a terminal would obey are replaced.
  std::int64_t text_number(std::string_view text) {
    const auto [found, is_new] =
        text_numbers_.try_emplace(text::to_line(text), static_cast<std::int64_t>(texts_.size()));
    if (is_new) texts_.push_back(&found->first);
    return found->second;
  }
  void write_if_full() {
    constexpr std::size_t enough = std::size_t{64} * 1024;
    if (buffer_.size() >= enough) write_out();
  }
  void write_out() {
    write_(buffer_);
    buffer_.clear();
  }

  const StackTable& stacks_;
  AllocationFunctions allocation_functions_;
  NamePattern hidden_;
  ModuleId handing_on_from_;
  const std::function<void(std::string_view)>& write_;
  std::string buffer_;
  protozero::pbf_builder<ProfileField> profile_{buffer_};
  std::vector<bool> has_location_;  // by its number less 1
  std::vector<Symbols> symbols_ = std::vector<Symbols>(stacks_.module_count());
  std::unordered_map<std::string, std::int64_t> text_numbers_;
  std::vector<const std::string*> texts_;
  std::unordered_map<std::uint64_t, FunctionId> functions_;  // by the numbers of name and file
};

void PprofWriter::put_value_type(ProfileField field, std::string_view type, std::string_view unit) {
  protozero::pbf_builder<ValueTypeField> value(profile_, field);
  value.add_int64(ValueTypeField::type, text_number(type));
  value.add_int64(ValueTypeField::unit, text_number(unit));
}

void PprofWriter::put_sample_types() {
  for (const char* const what : {"alloc", "inuse", "peak"}) {
    put_value_type(ProfileField::sample_type, std::string(what) + "_objects", "count");
    put_value_type(ProfileField::sample_type, std::string(what) + "_space", "bytes");
  }
  put_value_type(ProfileField::sample_type, "temporary_objects", "count");
  put_value_type(ProfileField::period_type, "space", "bytes");
  profile_.add_int64(ProfileField::period, 1);  // each allocation was counted
  profile_.add_int64(ProfileField::default_sample_type, text_number("peak_space"));
}

bool PprofWriter::is_hidden(std::span<const FrameName> names) {
  return std::all_of(names.begin(), names.end(),
                     [this](const FrameName& each) { return hidden_.matches(each.function); });
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
    if (hidden_.matches(names[i].function)) continue;
    if (!allocation_functions_.has(stacks_, frame, names[i].function)) return is_after_allocation ? i : 0;
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
    if (locations.size() == locations_max) {
      locations.push_back(location_of(0));
      break;
    }
    const FrameId frame = stacks_.node(at).frame;
    const std::span<const FrameName> names = stacks_.names(frame);
    const bool hands_on =
        names.empty() ? allocation_functions_.has(stacks_, frame, "") : first_callers[frame] == names.size();
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
    if (std::all_of(values.begin(), values.end(), [](std::uint64_t value) { return value == 0; })) continue;
    const std::vector<std::uint64_t> locations = locations_of(entry.key, first_callers);
    {
      protozero::pbf_builder<SampleField> sample(profile_, ProfileField::sample);
      sample.add_packed_uint64(SampleField::location_id, locations.begin(), locations.end());
      sample.add_packed_int64(SampleField::value, values.begin(), values.end());
    }
    write_if_full();
  }
}

/// Returns the index of the first function of a frame that a stack may be charged to. If the frame has only allocation
/// functions, the stack has no others, and this is the outermost one.
std::size_t PprofWriter::first_charged(FrameId frame) {
  const std::span<const FrameName> names = stacks_.names(frame);
  const std::size_t first = first_caller(frame);
  if (first != names.size() || names.empty()) return names.empty() ? 0 : first;
  std::size_t last = names.size() - 1;
  while (hidden_.matches(names[last].function)) --last;
  return last;
}

void PprofWriter::put_locations() {
  const std::size_t frames = stacks_.frame_count();
  for (FrameId frame = 1; frame < frames; ++frame) {
    if (has_location_[frame]) put_location(frame, location_of(frame), 0);
    if (has_location_[frames + frame]) put_location(frame, caller_location_of(frame), first_charged(frame));
    write_if_full();
  }
  if (has_location_[0]) put_location(1, "[cut]");
  if (has_location_[frames]) put_location(unknown_location(), "[unknown]");
}

/// Writes a location without a place in the code.
void PprofWriter::put_location(std::uint64_t id, const std::string& function) {
  const FunctionId called = function_of(function, "");
  protozero::pbf_builder<LocationField> location(profile_, ProfileField::location);
  location.add_uint64(LocationField::id, id);
  put_line(location, called, 0);
}

/// Writes a location with the functions of a frame from the index `first_name` on.
void PprofWriter::put_location(FrameId frame, std::uint64_t id, std::size_t first_name) {
  struct Line {
    FunctionId function;
    std::uint32_t line;
  };
  assert(first_name <= stacks_.names(frame).size());
  const Frame& place = stacks_.frame(frame);
  const std::span<const FrameName> names = stacks_.names(frame).subspan(first_name);
  Symbols& symbols = symbols_[place.module];
  symbols.is_used = true;
  symbols.inlined |= names.size() > 1;
  std::vector<Line> lines;
  for (const FrameName& each : names) {
    symbols.functions |= !each.function.empty();
    symbols.files |= !each.file.empty();
    symbols.lines |= each.line != 0;
    const bool is_known = !each.function.empty() || !each.file.empty();
    if (!is_known || hidden_.matches(each.function)) continue;
    lines.push_back({function_of(function_text(stacks_, frame, &each), each.file), each.line});
  }
  protozero::pbf_builder<LocationField> location(profile_, ProfileField::location);
  location.add_uint64(LocationField::id, id);
  if (place.module != 0) location.add_uint64(LocationField::mapping_id, place.module);
  location.add_uint64(LocationField::address, place.instruction());
  for (const Line& line : lines) put_line(location, line.function, line.line);
}

void PprofWriter::put_line(protozero::pbf_builder<LocationField>& location, FunctionId function, std::uint32_t line) {
  protozero::pbf_builder<LineField> written(location, LocationField::line);
  written.add_uint64(LineField::function_id, function);
  if (line != 0) written.add_int64(LineField::line, line);
}

PprofWriter::FunctionId PprofWriter::function_of(std::string_view name, std::string_view file) {
  const std::int64_t name_number = text_number(name), file_number = text_number(file);
  const std::uint64_t key = static_cast<std::uint64_t>(name_number) << 32 | static_cast<std::uint64_t>(file_number);
  const auto [found, is_new] = functions_.try_emplace(key, functions_.size() + 1);
  if (is_new) {
    protozero::pbf_builder<FunctionField> function(profile_, ProfileField::function);
    function.add_uint64(FunctionField::id, found->second);
    function.add_int64(FunctionField::name, name_number);
    function.add_int64(FunctionField::system_name, name_number);
    function.add_int64(FunctionField::filename, file_number);
  }
  return found->second;
}

void PprofWriter::put_mappings(std::string_view program) {
  const auto is_program = [&](ModuleId id) {
    return !program.empty() && base_name(stacks_.module(id).path) == base_name(program);
  };
  for (const bool wanted : {true, false}) {
    for (ModuleId id = 1; id < stacks_.module_count(); ++id) {
      const bool is_needed = symbols_[id].is_used || (wanted && id < handing_on_from_);
      if (is_program(id) == wanted && is_needed) put_mapping(id);
    }
  }
}

void PprofWriter::put_mapping(ModuleId id) {
  const Module& module = stacks_.module(id);
  const Symbols& symbols = symbols_[id];
  protozero::pbf_builder<MappingField> mapping(profile_, ProfileField::mapping);
  mapping.add_uint64(MappingField::id, id);
  mapping.add_uint64(MappingField::memory_start, module.begin);
  mapping.add_uint64(MappingField::memory_limit, module.end);
  mapping.add_int64(MappingField::filename, text_number(module.path));
  mapping.add_int64(MappingField::build_id, text_number(hex_digits(module.build_id)));
  mapping.add_bool(MappingField::has_functions, symbols.functions);
  mapping.add_bool(MappingField::has_filenames, symbols.files);
  mapping.add_bool(MappingField::has_line_numbers, symbols.lines);
  mapping.add_bool(MappingField::has_inline_frames, symbols.inlined);
}

void PprofWriter::put_facts(const Header& header, const Uses& uses, const std::vector<std::string>& comments) {
  const bool has_times = uses.end_time_ns != unknown && uses.begin_time_ns <= uses.end_time_ns;
  const auto start = symbols::start_of(header);
  if (const auto time_ns = start ? time_ns_of(*start, has_times ? uses.begin_time_ns : 0) : std::nullopt)
    profile_.add_int64(ProfileField::time_nanos, *time_ns);
  if (has_times)
    profile_.add_int64(ProfileField::duration_nanos, static_cast<std::int64_t>(uses.end_time_ns - uses.begin_time_ns));
  for (const std::string& comment : comments) profile_.add_int64(ProfileField::comment, text_number(comment));
}

void PprofWriter::put_texts() {
  for (const std::string* const text : texts_) {
    profile_.add_string(ProfileField::string_table, *text);
    write_if_full();
  }
  write_out();
}

}  // namespace

void write_pprof(const StackTable& stacks, const Uses& uses, const ChargeRule& charges, const std::string& hidden,
                 const Header& header, const std::vector<std::string>& comments,
                 const std::function<void(std::string_view)>& write) {
  PprofWriter profile(stacks, charges, hidden, write);
  profile.put_sample_types();
  profile.put_samples(uses);
  profile.put_locations();
  profile.put_mappings(header.find("program").value_or(""));
  profile.put_facts(header, uses, comments);
  profile.put_texts();
}

}  // namespace cmt::lifetimes
