/// Writes a profile for pprof: one message of protocol buffers, in the form of profile.proto, not compressed yet.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <protozero/buffer_string.hpp>
#include <protozero/pbf_builder.hpp>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cmt/stacks.h"

namespace cmt::pprof {

/// The locations of a sample. A deeper stack keeps its innermost ones: a sample names each of its locations, so the
/// size of a profile would grow with the square of the depth.
inline constexpr std::size_t locations_max = 1024;

/// Writes the entries of a profile one by one. They may come in any order, but types come in the order of the values
/// that each sample has. Texts may be any bytes: characters that are no UTF-8 or that a terminal would obey are
/// replaced. Memory: the texts, which finish() writes.
class ProfileMessage {
 public:
  /// Calls `write` with pieces of the message. Borrows it.
  explicit ProfileMessage(const std::function<void(std::string_view)>& write) : write_(write) { text_number(""); }
  ProfileMessage(const ProfileMessage&) = delete;
  ProfileMessage& operator=(const ProfileMessage&) = delete;

  void put_sample_type(std::string_view type, std::string_view unit);
  /// `period`: of the type, for each sample.
  void put_period(std::string_view type, std::string_view unit, std::int64_t period);
  /// The type that viewers show first.
  void put_default_type(std::string_view type);

  /// `locations`: their ids, the innermost first.
  void put_sample(std::span<const std::uint64_t> locations, std::span<const std::uint64_t> values);

  /// A place in the code. Module 0: none.
  struct Place {
    ModuleId module;
    std::uint64_t address;
  };
  /// `lines`: the functions there, the innermost of inlined ones first.
  void put_location(std::uint64_t id, const std::optional<Place>& place, std::span<const FrameName> lines);

  /// Whether locations of a module have functions, files and so on.
  struct Symbols {
    bool functions = false, files = false, lines = false, inlined = false;
  };
  /// The first that is put is the program itself for viewers.
  /// `offset`: in the file, of the module's begin.
  void put_mapping(ModuleId id, const Module& module, const Symbols& symbols, std::uint64_t offset = 0);

  /// In nanoseconds since 1970.
  void put_time(std::int64_t ns);
  void put_duration(std::uint64_t ns);
  void put_comment(std::string_view text);

  /// Writes the rest. To be called once, last.
  void finish();

 private:
  using FunctionId = std::uint64_t;
  enum class Field : protozero::pbf_tag_type;

  std::int64_t text_number(std::string_view text);
  FunctionId function_of(std::string_view name, std::string_view file);
  void put_value_type(Field field, std::string_view type, std::string_view unit);
  void write_if_full(std::size_t enough = std::size_t{64} * 1024);

  const std::function<void(std::string_view)>& write_;
  std::string buffer_;
  protozero::pbf_builder<Field> profile_{buffer_};
  std::unordered_map<std::string, std::int64_t> text_numbers_;
  std::vector<const std::string*> texts_;
  std::unordered_map<std::uint64_t, FunctionId> functions_;  // by the numbers of name and file
};

/// The path without its folders.
inline std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace cmt::pprof
