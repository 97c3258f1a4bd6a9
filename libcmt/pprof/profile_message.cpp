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

#include "libcmt/pprof/profile_message.h"

#include "libcmt/text/utf8.h"

namespace cmt::pprof {

using Number = protozero::pbf_tag_type;

// The numbers of fields, by message.
enum class ProfileMessage::Field : Number {
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

namespace {

enum class ValueTypeField : Number { type = 1, unit = 2 };
enum class SampleField : Number { location_id = 1, value = 2 };
enum class MappingField : Number {
  id = 1,
  memory_start = 2,
  memory_limit = 3,
  file_offset = 4,
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

std::string hex_digits(std::string_view bytes) {
  std::string digits;
  for (const char byte : bytes) {
    digits += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4];
    digits += "0123456789abcdef"[static_cast<unsigned char>(byte) & 15];
  }
  return digits;
}

}  // namespace

/// Returns the number of a text.
std::int64_t ProfileMessage::text_number(std::string_view text) {
  const auto [found, is_new] = text_numbers_.try_emplace(text::to_line(text), static_cast<std::int64_t>(texts_.size()));
  if (is_new) texts_.push_back(&found->first);
  return found->second;
}

void ProfileMessage::write_if_full(std::size_t enough) {
  if (buffer_.size() < enough) return;
  write_(buffer_);
  buffer_.clear();
}

void ProfileMessage::put_value_type(Field field, std::string_view type, std::string_view unit) {
  protozero::pbf_builder<ValueTypeField> value(profile_, field);
  value.add_int64(ValueTypeField::type, text_number(type));
  value.add_int64(ValueTypeField::unit, text_number(unit));
}

/// Returns the number of a function, which is written if it is new.
ProfileMessage::FunctionId ProfileMessage::function_of(std::string_view name, std::string_view file) {
  const std::int64_t name_number = text_number(name), file_number = text_number(file);
  const std::uint64_t key = static_cast<std::uint64_t>(name_number) << 32 | static_cast<std::uint64_t>(file_number);
  const auto [found, is_new] = functions_.try_emplace(key, functions_.size() + 1);
  if (is_new) {
    protozero::pbf_builder<FunctionField> function(profile_, Field::function);
    function.add_uint64(FunctionField::id, found->second);
    function.add_int64(FunctionField::name, name_number);
    function.add_int64(FunctionField::system_name, name_number);
    function.add_int64(FunctionField::filename, file_number);
  }
  return found->second;
}

void ProfileMessage::put_sample_type(std::string_view type, std::string_view unit) {
  put_value_type(Field::sample_type, type, unit);
}

void ProfileMessage::put_period(std::string_view type, std::string_view unit, std::int64_t period) {
  put_value_type(Field::period_type, type, unit);
  profile_.add_int64(Field::period, period);
}

void ProfileMessage::put_default_type(std::string_view type) {
  profile_.add_int64(Field::default_sample_type, text_number(type));
}

void ProfileMessage::put_sample(std::span<const std::uint64_t> locations, std::span<const std::uint64_t> values) {
  {
    protozero::pbf_builder<SampleField> sample(profile_, Field::sample);
    sample.add_packed_uint64(SampleField::location_id, locations.begin(), locations.end());
    sample.add_packed_int64(SampleField::value, values.begin(), values.end());
  }
  write_if_full();
}

void ProfileMessage::put_location(std::uint64_t id, const std::optional<Place>& place,
                                  std::span<const FrameName> lines) {
  std::vector<FunctionId> functions;
  functions.reserve(lines.size());
  for (const FrameName& line : lines) functions.push_back(function_of(line.function, line.file));
  {
    protozero::pbf_builder<LocationField> location(profile_, Field::location);
    location.add_uint64(LocationField::id, id);
    if (place && place->module != 0) location.add_uint64(LocationField::mapping_id, place->module);
    if (place) location.add_uint64(LocationField::address, place->address);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      protozero::pbf_builder<LineField> written(location, LocationField::line);
      written.add_uint64(LineField::function_id, functions[i]);
      if (lines[i].line != 0) written.add_int64(LineField::line, lines[i].line);
    }
  }
  write_if_full();
}

void ProfileMessage::put_mapping(ModuleId id, const Module& module, const Symbols& symbols, std::uint64_t offset) {
  protozero::pbf_builder<MappingField> mapping(profile_, Field::mapping);
  mapping.add_uint64(MappingField::id, id);
  mapping.add_uint64(MappingField::memory_start, module.begin);
  mapping.add_uint64(MappingField::memory_limit, module.end);
  if (offset != 0) mapping.add_uint64(MappingField::file_offset, offset);
  mapping.add_int64(MappingField::filename, text_number(module.path));
  mapping.add_int64(MappingField::build_id, text_number(hex_digits(module.build_id)));
  mapping.add_bool(MappingField::has_functions, symbols.functions);
  mapping.add_bool(MappingField::has_filenames, symbols.files);
  mapping.add_bool(MappingField::has_line_numbers, symbols.lines);
  mapping.add_bool(MappingField::has_inline_frames, symbols.inlined);
}

void ProfileMessage::put_time(std::int64_t ns) { profile_.add_int64(Field::time_nanos, ns); }

void ProfileMessage::put_duration(std::uint64_t ns) {
  profile_.add_int64(Field::duration_nanos, static_cast<std::int64_t>(ns));
}

void ProfileMessage::put_comment(std::string_view text) { profile_.add_int64(Field::comment, text_number(text)); }

void ProfileMessage::finish() {
  for (const std::string* const text : texts_) {
    profile_.add_string(Field::string_table, *text);
    write_if_full();
  }
  write_if_full(0);
}

}  // namespace cmt::pprof
