// A terminal sends an arrow as Escape, "[" or "O" and a letter; Home and End so or with a number and "~"; and in
// general after Escape and "[" digits and semicolons up to one byte that is neither (ECMA-48, 5.4).

#include "cmtwatch/report/keys.h"

#include <string_view>

namespace cmt::watch {
namespace {

Key key_of_sequence(std::string_view sequence) {
  if (sequence == "C" || sequence == "B") return Key::next;
  if (sequence == "D" || sequence == "A") return Key::back;
  if (sequence == "H" || sequence == "1~" || sequence == "7~") return Key::first;
  if (sequence == "F" || sequence == "4~" || sequence == "8~") return Key::last;
  return Key::none;
}

Key key_of_byte(char byte) {
  constexpr char control_c = 3, control_d = 4;
  switch (byte) {
    case 'q':
    case 'Q':
    case control_c:
    case control_d:
      return Key::quit;
    case ' ':
      return Key::pause;
    case '\r':
    case '\n':
      return Key::next;
    default:
      return Key::none;
  }
}

}  // namespace

Key take_key(std::string& bytes) {
  if (bytes.empty()) return Key::none;
  const bool sequence = bytes.size() >= 3 && bytes[0] == '\x1b' && (bytes[1] == '[' || bytes[1] == 'O');
  if (!sequence) {
    const char byte = bytes[0];
    bytes.erase(0, 1);
    return key_of_byte(byte);
  }
  const auto end = bytes.find_first_not_of("0123456789;", 2);
  const std::size_t length = end == bytes.npos ? bytes.size() : end + 1;
  const Key key = key_of_sequence(std::string_view(bytes).substr(2, length - 2));
  bytes.erase(0, length);
  return key;
}

}  // namespace cmt::watch
