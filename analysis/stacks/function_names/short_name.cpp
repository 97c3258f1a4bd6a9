// Shortens names of C++, Rust and Go in one pass from the front.
#include "analysis/stacks/function_names/short_name.h"

#include <algorithm>
#include <array>

#include "analysis/stacks/function_names/python_frames.h"

namespace cmt::analysis {
namespace {

bool is_of_word(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Reads a name from its front, and keeps the parts that name the function.
class Shortener {
 public:
  explicit Shortener(std::string_view function) : rest_(function) {}

  std::string shortened() {
    while (!rest_.empty() && !is_done_) step();
    // A blank before the name ends the result; without arguments it is a part of a text that is no function.
    return has_arguments_ ? name_.substr(begin_) : name_;
  }

 private:
  void step() {
    constexpr std::string_view anonymous = "(anonymous namespace)";
    const char c = rest_.front();
    if (rest_.starts_with(anonymous))
      keep(anonymous.size());
    else if (c == '<')
      angle_brackets();
    else if (c == '(')
      round_brackets();
    else if (c == ')')
      end_at_arguments();
    else if (c == '{')
      braces();
    else if (c == ' ')
      blank();
    else if (rest_.starts_with("operator") && (name_.empty() || !is_of_word(name_.back())) &&
             (rest_.size() == 8 || !is_of_word(rest_[8])))
      operator_name();
    else
      keep(1);
  }

  bool is_at_begin() const { return name_.size() == begin_; }
  std::size_t bracket_size() const { return end_of_brackets(rest_, 0); }
  void skip(std::size_t size) { rest_.remove_prefix(std::min(size, rest_.size())); }
  void keep(std::size_t size) {
    name_ += rest_.substr(0, size);
    skip(size);
  }
  void end_at_arguments() {
    has_arguments_ = true;
    is_done_ = true;
  }

  /// Empties template arguments. Brackets at the begin of a name are kept: "<Type as Trait>::method" of Rust.
  void angle_brackets() {
    if (is_at_begin()) {
      keep(bracket_size());
      return;
    }
    name_ += "<>";
    skip(bracket_size());
  }

  void round_brackets() {
    const std::size_t size = bracket_size();
    if (!name_.empty() && name_.back() == '.') {  // Go: main.(*Server).Handle
      keep(size);
      return;
    }
    if (is_at_begin() || name_.substr(begin_) == "decltype") {
      skip(rest_.starts_with("(*") || rest_.starts_with("(&") ? 2 : size);  // "int (*f(char))(int)", "decltype (x) f()"
      return;
    }
    std::string_view after = rest_.substr(size);
    if (after.starts_with(" const::")) after.remove_prefix(6);
    if (!after.starts_with("::")) {
      end_at_arguments();
      return;
    }
    rest_ = after;  // a lambda or a class in that function
  }

  /// "{lambda(int)#1}", "{{closure}}".
  void braces() {
    const std::string_view inner = rest_.substr(0, bracket_size());
    for (std::size_t at = 0; at < inner.size();) {
      if (inner[at] == '(') {
        at = end_of_brackets(inner, at);
      } else {
        name_ += inner[at++];
      }
    }
    skip(inner.size());
  }

  void blank() {
    if (rest_.starts_with(" [clone ")) {
      is_done_ = true;
      return;
    }
    name_ += ' ';
    skip(1);
    if (!is_conversion_) begin_ = name_.size();
  }

  void operator_name() {
    static constexpr std::array<std::string_view, 25> symbols{
        "()", "[]", "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "==", "!=",
        "&&", "||", "++",  "--",  "+=",  "-=",  "*=", "/=", "%=", "^=", "&=", "|="};
    keep(8);
    is_conversion_ = rest_.starts_with(' ');  // or operator new
    if (is_conversion_ || rest_.empty()) return;
    const auto found =
        std::find_if(symbols.begin(), symbols.end(), [this](auto each) { return rest_.starts_with(each); });
    if (found != symbols.end())
      keep(found->size());
    else if (rest_.front() != '(')
      keep(1);
    if (rest_.starts_with(" <")) skip(1);
  }

  std::string_view rest_;
  std::string name_;
  std::size_t begin_ = 0;  // where the name begins in name_, after the result
  bool is_conversion_ = false;
  bool has_arguments_ = false;
  bool is_done_ = false;
};

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// Takes ":12" off the end of a text. Returns false if there is none.
bool drop_number(std::string_view& text) {
  const std::size_t digits = text.find_last_not_of("0123456789");
  if (digits == std::string_view::npos || digits + 1 == text.size() || text[digits] != ':') return false;
  text = text.substr(0, digits);
  return true;
}

/// Shortens a function of Python or JavaScript, as their perf maps name it (toolkit/symbols/perf_map.h). Returns an
/// empty text for others.
std::string script_name(std::string_view function) {
  if (is_python_function(function)) return std::string(function);
  if (function.starts_with("py::")) {
    const std::size_t colon = function.find(':', 4);
    if (colon == std::string_view::npos) return {};
    return std::string(function.substr(4, colon - 4)) + " (" + std::string(file_name(function.substr(colon + 1))) + ")";
  }
  const std::size_t blank = function.rfind(' ');
  if (blank == std::string_view::npos || function.back() < '0' || function.back() > '9') return {};
  std::string_view line = function.substr(blank + 1), file = line;
  if (!drop_number(file)) return {};
  std::string_view path = file;
  if (drop_number(path)) line = file;  // the column is left out
  return std::string(function.substr(0, blank)) + " (" + std::string(file_name(line)) + ")";
}

}  // namespace

std::size_t end_of_brackets(std::string_view text, std::size_t at) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '<' || c == '(' || c == '[' || c == '{') ++depth;
    if (c == '>' && at > 0 && text[at - 1] == '-') continue;
    if ((c == '>' || c == ')' || c == ']' || c == '}') && --depth == 0) return at + 1;
  }
  return at;
}

bool has_place(std::string_view function) { return function.starts_with("py::") || is_javascript_function(function); }

bool is_javascript_function(std::string_view text) {
  return !text.starts_with("py::") && !is_python_function(text) && !script_name(text).empty();
}

std::string short_name(std::string_view function) {
  if (const std::string of_script = script_name(function); !of_script.empty()) return of_script;
  std::string name = Shortener(function).shortened();
  return name.empty() ? std::string(function) : name;
}

}  // namespace cmt::analysis
