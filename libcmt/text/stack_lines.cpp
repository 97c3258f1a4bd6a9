// The lines of a text trace that define call stacks:
//
//     #module 1 begin=55d0c0a00000 end=55d0c0a05000 bias=55d0c0a00000 build_id=8c1fba20 loaded=0 path=/usr/bin/app
//     #frame 1 module=1 address=55d0c0a01139
//     #name 1 function="parse(char const*)" file=parse.cpp line=17
//     #node 1 parent=0 frame=1
//     malloc(8) = 55d0c1e2b2a0<1> stack=1

#include "libcmt/text/stack_lines.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "libcmt/text/format.h"
#include "libcmt/text/parser.h"

namespace cmt::text {
namespace {

constexpr std::string_view hex_letters = "0123456789abcdef";

void append_field(std::string& out, std::string_view key, std::uint64_t value, int base = 10) {
  out += ' ';
  out += key;
  out += '=';
  append_number(out, value, base);
}

void append_text(std::string& out, std::string_view key, std::string_view value) {
  out += ' ';
  out += key;
  out += '=';
  append_value(out, value);
}

void begin_line(std::string& out, std::string_view word, std::uint64_t number) {
  out += word;
  append_number(out, number);
}

std::uint32_t& number_at(std::vector<std::uint32_t>& numbers, std::size_t index) {
  if (numbers.size() <= index) numbers.resize(std::max(index + 1, numbers.size() * 2));
  return numbers[index];
}

/// Appends the bytes of a build id. Returns false if the text does not consist of pairs of digits.
bool bytes_of_hex(std::string_view hex, std::string& bytes) {
  if (hex.size() % 2 != 0 || hex.size() / 2 > build_id_limit) return false;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const std::size_t high = hex_letters.find(hex[i]), low = hex_letters.find(hex[i + 1]);
    if (high == hex_letters.npos || low == hex_letters.npos) return false;
    bytes += static_cast<char>(high << 4 | low);
  }
  return true;
}

}  // namespace

std::uint32_t StackLineWriter::append_stack(std::string& out, StackId id) {
  if (table_ == nullptr || id >= table_->node_count()) return 0;
  StackId parent = id;
  for (path_.clear(); parent != 0 && number_at(node_numbers_, parent) == 0; parent = table_->node(parent).parent) {
    path_.push_back(parent);
  }
  for (auto node = path_.rbegin(); node != path_.rend(); ++node) {
    const std::uint32_t frame = append_frame(out, table_->node(*node).frame);
    begin_line(out, "#node ", ++nodes_);
    append_field(out, "parent", parent != 0 ? node_numbers_[parent] : 0);
    append_field(out, "frame", frame);
    out += '\n';
    node_numbers_[*node] = nodes_;
    parent = *node;
  }
  return id != 0 ? node_numbers_[id] : 0;
}

std::uint32_t StackLineWriter::append_frame(std::string& out, FrameId id) {
  std::uint32_t& number = number_at(frame_numbers_, id);
  if (id == 0 || number != 0) return number;
  const Frame& frame = table_->frame(id);
  const std::uint32_t module = append_module(out, frame.module);
  number = static_cast<std::uint32_t>(frames_.size());
  frames_.push_back(id);
  is_named_.push_back(false);
  begin_line(out, "#frame ", number);
  append_field(out, "module", module);
  append_field(out, "address", frame.address, 16);
  if (frame.is_exact) append_field(out, "exact", 1);
  out += '\n';
  append_names(out, number);
  return number;
}

std::uint32_t StackLineWriter::append_module(std::string& out, ModuleId id) {
  std::uint32_t& number = number_at(module_numbers_, id);
  if (id == 0 || number != 0) return number;
  const Module& module = table_->module(id);
  number = static_cast<std::uint32_t>(modules_.size());
  modules_.push_back(id);
  begin_line(out, "#module ", number);
  append_field(out, "begin", module.begin, 16);
  append_field(out, "end", module.end, 16);
  append_field(out, "bias", module.bias, 16);
  if (!module.build_id.empty()) out += " build_id=";
  for (const char c : module.build_id) {
    out += hex_letters[static_cast<unsigned char>(c) >> 4];
    out += hex_letters[static_cast<unsigned char>(c) & 15];
  }
  if (module.loaded_ns != unknown) append_field(out, "loaded", module.loaded_ns);
  append_text(out, "path", module.path);
  out += '\n';
  return number;
}

void StackLineWriter::append_names(std::string& out, std::uint32_t frame) {
  assert(is_named_.size() == frames_.size());
  const auto names = table_->names(frames_[frame]);
  is_named_[frame] = !names.empty();
  for (const FrameName& name : names) {
    begin_line(out, "#name ", frame);
    append_text(out, "function", name.function);
    if (!name.file.empty()) append_text(out, "file", name.file);
    if (name.line != 0) append_field(out, "line", name.line);
    out += '\n';
  }
}

void StackLineWriter::append_end(std::string& out) {
  for (std::uint32_t frame = 1; frame < frames_.size(); ++frame) {
    if (!is_named_[frame]) append_names(out, frame);
  }
  for (std::uint32_t number = 1; number < modules_.size(); ++number) {
    const std::uint64_t unloaded_ns = table_->module(modules_[number]).unloaded_ns;
    if (unloaded_ns == unknown) continue;
    begin_line(out, "#unloaded ", number);
    append_field(out, "time", unloaded_ns);
    out += '\n';
  }
}

namespace {

constexpr std::array<std::string_view, 5> definition_words{"#module ", "#frame ", "#name ", "#node ", "#unloaded "};

}  // namespace

bool StackLineReader::is_definition(std::string_view line) {
  return std::any_of(definition_words.begin(), definition_words.end(), [&](std::string_view word) {
    return line.starts_with(word) && line.size() > word.size() && line[word.size()] >= '0' && line[word.size()] <= '9';
  });
}

/// The fields of a line, in any order. Unknown fields are skipped.
struct StackLineReader::Fields {
  std::uint64_t number = 0;
  std::uint64_t begin = 0, end = 0, bias = 0, address = 0;
  std::uint64_t module = unknown, frame = unknown, parent = unknown, loaded = unknown, time = unknown;
  std::uint64_t exact = 0, line = 0;
  std::string path, build_id, function, file;
  bool has_path = false, has_function = false, has_address = false;

  /// Returns false if the line does not consist of fields, or if a value is no valid number for its key.
  bool take(Scanner& scan) {
    if (!scan.take_decimal(number)) return false;
    while (!scan.at_end()) {
      const std::string_view key = scan.take_key();
      if (key.empty() || !scan.take('=')) return false;
      if (!take_value(scan, key)) return false;
    }
    return true;
  }

 private:
  bool take_value(Scanner& scan, std::string_view key) {
    for (const auto& [name, value] : {std::pair<std::string_view, std::uint64_t*>{"module", &module},
                                      {"frame", &frame},
                                      {"parent", &parent},
                                      {"loaded", &loaded},
                                      {"time", &time},
                                      {"exact", &exact},
                                      {"line", &line}}) {
      if (name == key) return scan.take_decimal(*value) && *value <= attribute_limit;
    }
    for (const auto& [name, value] : {std::pair<std::string_view, std::uint64_t*>{"begin", &begin},
                                      {"end", &end},
                                      {"bias", &bias},
                                      {"address", &address}}) {
      if (name != key) continue;
      has_address |= key == "address";
      return scan.take_hex(*value);
    }
    std::string value;
    if (scan.peek() == '"') {
      if (!scan.take_string(value)) return false;
    } else {
      value = scan.take_bare();
    }
    if (key == "build_id") return bytes_of_hex(value, build_id);
    has_path |= key == "path";
    has_function |= key == "function";
    if (key == "path")
      path = std::move(value);
    else if (key == "function")
      function = std::move(value);
    else if (key == "file")
      file = std::move(value);
    return path.size() <= module_path_limit;
  }
};

std::string_view StackLineReader::take(std::string_view line) {
  const auto* const word = std::find_if(definition_words.begin(), definition_words.end(),
                                        [&](std::string_view each) { return line.starts_with(each); });
  assert(word != definition_words.end());
  Scanner scan(line.substr(word->size()));
  Fields fields;
  if (!fields.take(scan)) return "fields, as in frame=1, of this sort of line";
  switch (word - definition_words.begin()) {
    case 0:
      return take_module(fields);
    case 1:
      return take_frame(fields);
    case 2:
      return take_name(fields);
    case 3:
      return take_node(fields);
    default:
      return take_unloaded(fields);
  }
}

std::string_view StackLineReader::take_module(Fields& fields) {
  if (!fields.has_path) return "path=";
  if (modules_.contains(fields.number)) return "a number that no module has yet";
  modules_[fields.number] = table_.append_module({.path = std::move(fields.path),
                                                  .build_id = std::move(fields.build_id),
                                                  .begin = fields.begin,
                                                  .end = fields.end,
                                                  .bias = fields.bias,
                                                  .loaded_ns = fields.loaded});
  return {};
}

std::string_view StackLineReader::take_frame(Fields& fields) {
  const auto module = modules_.find(fields.module);
  if (module == modules_.end()) return "module=, the number of a module that is defined";
  if (!fields.has_address) return "address=";
  if (frames_.contains(fields.number)) return "a number that no frame has yet";
  frames_[fields.number] = table_.add_frame({module->second, fields.address, fields.exact != 0});
  return {};
}

std::string_view StackLineReader::take_name(Fields& fields) {
  const auto frame = frames_.find(fields.number);
  if (frame == frames_.end() || fields.number == 0) return "the number of a frame that is defined";
  if (!fields.has_function) return "function=";
  if (fields.line > 0xffffffff) return "a line's number";
  const FrameName name{fields.function, fields.file, static_cast<std::uint32_t>(fields.line)};
  return table_.add_name(frame->second, name) ? "" : "no further name, beyond the 256th of a frame";
}

std::string_view StackLineReader::take_node(Fields& fields) {
  const auto parent = nodes_.find(fields.parent);
  const auto frame = frames_.find(fields.frame);
  if (parent == nodes_.end()) return "parent=, the number of a node that is defined, or 0";
  if (frame == frames_.end()) return "frame=, the number of a frame that is defined";
  if (frame->second == 0 && parent->second != 0) return "a frame other than 0, which only the outermost may have";
  if (nodes_.contains(fields.number)) return "a number that no node has yet";
  nodes_[fields.number] = table_.add_node({parent->second, frame->second});
  return {};
}

std::string_view StackLineReader::take_unloaded(Fields& fields) {
  const auto module = modules_.find(fields.number);
  if (module == modules_.end() || fields.number == 0) return "the number of a module that is defined";
  if (fields.time == unknown) return "time=";
  table_.set_unloaded(module->second, fields.time);
  return {};
}

}  // namespace cmt::text
