#include "toolkit/symbols/rust_name.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <utility>
#include <vector>

namespace cmt::symbols {
namespace {

/// A symbol that breaks the rules of its form.
struct BadSymbol {};

constexpr std::size_t name_size_max = 65536;
constexpr int nesting_max = 200;

void append_utf8(std::string& text, std::uint32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
  } else if (code < 0x10000) {
    text += {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 63)),
             static_cast<char>(0x80 | (code & 63))};
  } else {
    text += {static_cast<char>(0xf0 | code >> 18), static_cast<char>(0x80 | (code >> 12 & 63)),
             static_cast<char>(0x80 | (code >> 6 & 63)), static_cast<char>(0x80 | (code & 63))};
  }
}

/// The text of Punycode (RFC 3492), with an underscore in the place of its hyphen.
std::string from_punycode(std::string_view input) {
  const std::size_t separator = input.rfind('_');
  std::vector<std::uint32_t> codes;
  if (separator != std::string_view::npos)
    codes.assign(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(separator));
  std::size_t at = separator == std::string_view::npos ? 0 : separator + 1;
  std::uint64_t code = 128, bias = 72, index = 0;
  for (bool is_first = true; at < input.size(); is_first = false) {
    const std::uint64_t before = index;
    for (std::uint64_t weight = 1, k = 36;; k += 36) {
      if (at == input.size()) throw BadSymbol();
      const char c = input[at++];
      const bool is_digit = c >= '0' && c <= '9';
      if (!is_digit && (c < 'a' || c > 'z')) throw BadSymbol();
      const auto digit = static_cast<std::uint64_t>(is_digit ? c - '0' + 26 : c - 'a');
      index += digit * weight;
      const std::uint64_t threshold = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
      if (index > 0xffffffff) throw BadSymbol();
      if (digit < threshold) break;
      weight *= 36 - threshold;
    }
    const std::uint64_t count = codes.size() + 1;
    std::uint64_t delta = (index - before) / (is_first ? 700 : 2);
    delta += delta / count;
    std::uint64_t k = 0;
    for (; delta > 455; k += 36) delta /= 35;
    bias = k + 36 * delta / (delta + 38);
    code += index / count;
    if (code > 0x10ffff) throw BadSymbol();
    index %= count;
    codes.insert(codes.begin() + static_cast<std::ptrdiff_t>(index++), static_cast<std::uint32_t>(code));
  }
  std::string text;
  for (const std::uint32_t each : codes) append_utf8(text, each);
  return text;
}

std::string_view basic_type(char letter) {
  switch (letter) {
    case 'a':
      return "i8";
    case 'b':
      return "bool";
    case 'c':
      return "char";
    case 'd':
      return "f64";
    case 'e':
      return "str";
    case 'f':
      return "f32";
    case 'h':
      return "u8";
    case 'i':
      return "isize";
    case 'j':
      return "usize";
    case 'l':
      return "i32";
    case 'm':
      return "u32";
    case 'n':
      return "i128";
    case 'o':
      return "u128";
    case 'p':
      return "_";
    case 's':
      return "i16";
    case 't':
      return "u16";
    case 'u':
      return "()";
    case 'v':
      return "...";
    case 'x':
      return "i64";
    case 'y':
      return "u64";
    case 'z':
      return "!";
    default:
      return {};
  }
}

/// Reads a symbol from left to right and writes the name. Every rule of the grammar is a function.
class V0Reader {
 public:
  /// `text`: the symbol without "_R".
  explicit V0Reader(std::string_view text) : text_(text) {}

  std::string name() {
    read_path(true);
    return std::move(name_);
  }

 private:
  struct Identifier {
    std::uint64_t number = 0;  ///< tells apart what has the same name
    std::string name{};
  };

  /// Counts how deep rules are nested.
  class Nesting {
   public:
    explicit Nesting(V0Reader& reader) : reader_(reader) {
      if (++reader.depth_ > nesting_max || reader.name_.size() > name_size_max) throw BadSymbol();
    }
    ~Nesting() { --reader_.depth_; }

   private:
    V0Reader& reader_;
  };

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char next() {
    if (at_ == text_.size()) throw BadSymbol();
    return text_[at_++];
  }
  bool take(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }

  /// "_" is 0, "0_" is 1, "Z_" is 62.
  std::uint64_t read_base62() {
    if (take('_')) return 0;
    std::uint64_t value = 0;
    while (!take('_')) {
      const char c = next();
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'z' ? c - 'a' + 10
                        : c >= 'A' && c <= 'Z' ? c - 'A' + 36
                                               : -1;
      if (digit < 0 || value > (~std::uint64_t{0} - 62) / 62) throw BadSymbol();
      value = value * 62 + static_cast<std::uint64_t>(digit);
    }
    return value + 1;
  }
  std::uint64_t read_optional_base62(char mark) { return take(mark) ? read_base62() + 1 : 0; }

  std::string read_plain_identifier() {
    const bool is_punycode = take('u');
    std::size_t size = 0;
    if (peek() < '0' || peek() > '9') throw BadSymbol();
    if (!take('0')) {
      while (peek() >= '0' && peek() <= '9') {
        size = size * 10 + static_cast<std::size_t>(next() - '0');
        if (size > text_.size()) throw BadSymbol();
      }
    }
    take('_');
    if (size > text_.size() - at_) throw BadSymbol();
    const std::string_view bytes = text_.substr(at_, size);
    at_ += size;
    return is_punycode ? from_punycode(bytes) : std::string(bytes);
  }
  Identifier read_identifier() {
    Identifier identifier{.number = read_optional_base62('s')};
    identifier.name = read_plain_identifier();
    return identifier;
  }

  /// Reads by `rule` what stands further left in the symbol.
  template <class Rule>
  void read_backref(Rule rule) {
    const std::size_t begin = at_ - 1;
    const std::uint64_t target = read_base62();
    if (target >= begin) throw BadSymbol();
    const std::size_t after = at_;
    at_ = static_cast<std::size_t>(target);
    rule();
    at_ = after;
  }

  void read_path(bool in_value) {
    const Nesting nesting(*this);
    switch (const char kind = next()) {
      case 'C':
        name_ += read_identifier().name;
        return;
      case 'M':
        return read_impl(true, false);
      case 'X':
        return read_impl(true, true);
      case 'Y':
        return read_impl(false, true);
      case 'N':
        return read_nested(in_value);
      case 'I':
        return read_instance(in_value);
      case 'B':
        return read_backref([&] { read_path(in_value); });
      default:
        static_cast<void>(kind);
        throw BadSymbol();
    }
  }

  /// "<T>" or "<T as Trait>". The path of an impl block is where it stands in the source, which is left out.
  void read_impl(bool has_path, bool has_trait) {
    if (has_path) {
      read_optional_base62('s');
      const std::size_t size = name_.size();
      read_path(false);
      name_.resize(size);
    }
    name_ += '<';
    read_type();
    if (has_trait) {
      name_ += " as ";
      read_path(false);
    }
    name_ += '>';
  }

  void read_nested(bool in_value) {
    const char space = next();
    const bool is_special = space >= 'A' && space <= 'Z';
    if (!is_special && (space < 'a' || space > 'z')) throw BadSymbol();
    read_path(in_value);
    const Identifier identifier = read_identifier();
    if (!is_special) {
      if (!identifier.name.empty()) name_ += "::" + identifier.name;
      return;
    }
    name_ += "::{" + (space == 'C'   ? std::string("closure")
                      : space == 'S' ? std::string("shim")
                                     : std::string(1, space));
    if (!identifier.name.empty()) name_ += ":" + identifier.name;
    name_ += "#" + std::to_string(identifier.number) + "}";
  }

  void read_instance(bool in_value) {
    read_path(in_value);
    const std::size_t size_before = name_.size();
    name_ += in_value ? "::<" : "<";
    bool is_first = true;
    while (!take('E')) {
      const std::size_t size = name_.size();
      if (!is_first) name_ += ", ";
      if (take('L')) {  // a lifetime
        read_base62();
        name_.resize(size);
        continue;
      }
      is_first = false;
      if (take('K'))
        read_const();
      else
        read_type();
    }
    if (is_first) return name_.resize(size_before);  // lifetimes only
    name_ += '>';
  }

  void read_type() {
    const Nesting nesting(*this);
    const char kind = next();
    if (const std::string_view basic = basic_type(kind); !basic.empty()) {
      name_ += basic;
      return;
    }
    switch (kind) {
      case 'A':
        return read_array(true);
      case 'S':
        return read_array(false);
      case 'T':
        return read_tuple();
      case 'R':
        return read_reference("&");
      case 'Q':
        return read_reference("&mut ");
      case 'P':
        return name_ += "*const ", read_type();
      case 'O':
        return name_ += "*mut ", read_type();
      case 'F':
        return read_function_type();
      case 'D':
        return read_dyn();
      case 'B':
        return read_backref([&] { read_type(); });
      default:
        --at_;
        return read_path(false);
    }
  }

  void read_array(bool has_size) {
    name_ += '[';
    read_type();
    if (has_size) {
      name_ += "; ";
      read_const();
    }
    name_ += ']';
  }

  /// Types up to the "E" behind them. Returns how many.
  int read_types() {
    int count = 0;
    for (; !take('E'); ++count) {
      if (count != 0) name_ += ", ";
      read_type();
    }
    return count;
  }

  void read_tuple() {
    name_ += '(';
    if (read_types() == 1) name_ += ',';
    name_ += ')';
  }

  void read_reference(const char* sign) {
    if (take('L')) read_base62();
    name_ += sign;
    read_type();
  }

  void read_function_type() {
    read_optional_base62('G');
    if (take('U')) name_ += "unsafe ";
    if (take('K')) name_ += "extern \"" + (take('C') ? "C" : read_plain_identifier()) + "\" ";
    name_ += "fn(";
    read_types();
    name_ += ')';
    if (take('u')) return;
    name_ += " -> ";
    read_type();
  }

  void read_dyn() {
    name_ += "dyn ";
    read_optional_base62('G');
    for (bool is_first = true; !take('E'); is_first = false) {
      if (!is_first) name_ += " + ";
      read_path(false);
      read_bindings();
    }
    if (!take('L')) throw BadSymbol();
    read_base62();
  }

  /// The types that a trait's associated types are bound to: "<Output = u8>".
  void read_bindings() {
    if (peek() != 'p') return;
    const bool has_arguments = !name_.empty() && name_.back() == '>';
    if (has_arguments) name_.pop_back();
    name_ += has_arguments ? ", " : "<";
    for (bool is_first = true; take('p'); is_first = false) {
      if (!is_first) name_ += ", ";
      name_ += read_plain_identifier() + " = ";
      read_type();
    }
    name_ += '>';
  }

  void read_const() {
    const Nesting nesting(*this);
    if (take('B')) return read_backref([&] { read_const(); });
    if (take('p')) {
      name_ += '_';
      return;
    }
    const char type = next();
    if (basic_type(type).empty() || type == 'e') throw BadSymbol();  // structures as constants are not stable
    if (take('n')) name_ += '-';
    std::string digits;
    for (char c = next(); c != '_'; c = next()) {
      if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) throw BadSymbol();
      digits += c;
    }
    append_const(type, digits);
  }

  void append_const(char type, const std::string& digits) {
    if (digits.size() > 16) {
      name_ += "0x" + digits;
      return;
    }
    const std::uint64_t value = digits.empty() ? 0 : std::stoull(digits, nullptr, 16);
    if (type == 'b') {
      name_ += value != 0 ? "true" : "false";
    } else if (type == 'c' && value >= 0x20 && value <= 0x10ffff) {
      name_ += '\'';
      append_utf8(name_, static_cast<std::uint32_t>(value));
      name_ += '\'';
    } else {
      name_ += std::to_string(value);
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::string name_;
};

constexpr std::size_t rust_hash_size = 19;  // "::h" and 16 digits

bool ends_with_rust_hash(std::string_view name) {
  if (name.size() <= rust_hash_size) return false;
  const std::string_view hash = name.substr(name.size() - rust_hash_size);
  return hash.starts_with("::h") && hash.find_first_not_of("0123456789abcdef", 3) == std::string_view::npos;
}

/// What stands between two dollar signs; empty: not known.
std::string rust_escape(std::string_view escape) {
  constexpr std::array<std::pair<std::string_view, char>, 8> known{
      {{"SP", '@'}, {"BP", '*'}, {"RF", '&'}, {"LT", '<'}, {"GT", '>'}, {"LP", '('}, {"RP", ')'}, {"C", ','}}};
  for (const auto& [name, character] : known) {
    if (name == escape) return std::string(1, character);
  }
  unsigned code = 0;
  if (!escape.starts_with('u')) return {};
  const char* const end = escape.data() + escape.size();
  const auto [stop, error] = std::from_chars(escape.data() + 1, end, code, 16);
  if (error != std::errc() || stop != end || code < 0x20 || code > 0x7e) return {};
  return std::string(1, static_cast<char>(code));
}

}  // namespace

std::optional<std::string> rust_v0_name(std::string_view symbol) {
  if (!symbol.starts_with("_R") || symbol.size() < 3 || symbol[2] < 'A' || symbol[2] > 'Z') return std::nullopt;
  try {
    return V0Reader(symbol.substr(2, symbol.find_first_of(".$") - 2)).name();
  } catch (const BadSymbol&) {
    return std::nullopt;
  }
}

std::string without_rust_escapes(std::string_view name) {
  if (!ends_with_rust_hash(name)) return std::string(name);
  name.remove_suffix(rust_hash_size);
  std::string text;
  bool begins_part = true;  // of a path; an underscore there stands before an escape
  while (!name.empty()) {
    if (begins_part && name.starts_with("_$")) name.remove_prefix(1);
    begins_part = name.starts_with("::");
    if (name.starts_with("..")) {
      text += "::";
      name.remove_prefix(2);
      continue;
    }
    const std::size_t end = name.front() == '$' ? name.find('$', 1) : std::string_view::npos;
    const std::string escaped = end == std::string_view::npos ? "" : rust_escape(name.substr(1, end - 1));
    if (!escaped.empty()) {
      text += escaped;
      name.remove_prefix(end + 1);
      continue;
    }
    const std::size_t plain = begins_part ? 2 : 1;
    text += name.substr(0, plain);
    name.remove_prefix(plain);
  }
  return text;
}

}  // namespace cmt::symbols
