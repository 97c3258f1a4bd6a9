/// Text and numbers without libc's formatting, which allocates and takes locks. C and C++.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/// Writes a number without a terminating zero. Returns the end of the output.
static inline char* put_decimal(char* out, uint64_t value) {
  char digits[20], *first = digits + sizeof digits;
  do *--first = (char)('0' + value % 10);
  while (value /= 10);
  size_t length = (size_t)(digits + sizeof digits - first);
  memcpy(out, first, length);
  return out + length;
}

/// The part of a path that follows its last slash.
static inline const char* file_name_of(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/// The length of the well-formed UTF-8 sequence at the begin of a text, or 0.
static inline size_t utf8_bytes(const char* text, size_t length) {
  const unsigned char c = (unsigned char)text[0], next = length > 1 ? (unsigned char)text[1] : 0;
  const size_t bytes = c < 0x80                ? 1
                       : c >= 0xc2 && c < 0xe0 ? 2
                       : c >= 0xe0 && c < 0xf0 ? 3
                       : c >= 0xf0 && c < 0xf5 ? 4
                                               : 0;
  const bool is_overlong = (c == 0xe0 && next < 0xa0) || (c == 0xf0 && next < 0x90);
  if (bytes > length || is_overlong || (c == 0xed && next >= 0xa0) || (c == 0xf4 && next >= 0x90)) return 0;
  for (size_t i = 1; i < bytes; i++) {
    if (((unsigned char)text[i] & 0xc0) != 0x80) return 0;
  }
  return bytes;
}

/// Replaces bytes that are not UTF-8 by question marks: all text in a trace is UTF-8.
static inline void make_utf8(char* text, size_t length) {
  for (size_t i = 0; i < length;) {
    const size_t bytes = utf8_bytes(text + i, length - i);
    if (bytes == 0) text[i] = '?';
    i += bytes ? bytes : 1;
  }
}

/// Whether a shell reads a word as it is.
static inline bool is_plain_word(const char* word, size_t length) {
  for (size_t i = 0; i < length; i++) {
    const char c = word[i];
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!is_letter && (c == 0 || strchr("@%+=:,./_-", c) == NULL)) return false;
  }
  return length != 0;
}

/// Room for text; what has no room is left out.
struct TextRoom {
  char *at, *end;
  bool is_full;  ///< text was left out
};
static inline void put_text(struct TextRoom* out, const char* text, size_t length) {
  for (; length && out->at < out->end; length--) *out->at++ = *text++;
  out->is_full = out->is_full || length != 0;
}

/// Whether a terminal obeys a character of UTF-8 instead of showing it, as text::control_length (libcmt/text/utf8.h).
static inline bool is_obeyed(const unsigned char* at, size_t bytes) {
  if (bytes == 1) return at[0] < ' ' || at[0] == 0x7f;
  if (bytes == 2) return (at[0] == 0xc2 && at[1] < 0xa0) || (at[0] == 0xd8 && at[1] == 0x9c);
  if (bytes != 3 || at[0] != 0xe2) return false;
  if (at[1] == 0x80) return at[2] == 0x8e || at[2] == 0x8f || (at[2] >= 0xaa && at[2] <= 0xae);
  return at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9;
}

/// Whether text in single quotes would lose a part of a word: a character that a terminal obeys, or a byte that is not
/// UTF-8.
static inline bool needs_escapes(const char* word, size_t length) {
  for (size_t i = 0, bytes; i < length; i += bytes) {
    bytes = utf8_bytes(word + i, length - i);
    if (bytes == 0 || is_obeyed((const unsigned char*)word + i, bytes)) return true;
  }
  return false;
}

static inline void put_escaped(struct TextRoom* out, char c) {
  const unsigned char byte = (unsigned char)c;
  const char octal[] = {'\\', (char)('0' + (byte >> 6)), (char)('0' + (byte >> 3 & 7)), (char)('0' + (byte & 7))};
  const char letter[] = {'\\', c == '\n' ? 'n' : c == '\t' ? 't' : c};
  if (c == '\n' || c == '\t' || c == '\'' || c == '\\')
    put_text(out, letter, sizeof letter);
  else if (byte < ' ' || byte > '~')
    put_text(out, octal, sizeof octal);
  else
    put_text(out, &c, 1);
}

/// Writes a word as command::shell_word (toolkit/command/command_line.h) does.
static inline void put_shell_word(struct TextRoom* out, const char* word, size_t length, bool is_plain) {
  if (is_plain) {
    put_text(out, word, length);
  } else if (needs_escapes(word, length)) {
    put_text(out, "$'", 2);
    for (size_t i = 0; i < length; i++) put_escaped(out, word[i]);
    put_text(out, "'", 1);
  } else {
    put_text(out, "'", 1);
    for (size_t i = 0; i < length; i++) put_text(out, word[i] == '\'' ? "'\\''" : word + i, word[i] == '\'' ? 4 : 1);
    put_text(out, "'", 1);
  }
}

/// Writes a command line, whose words end with a zero each, as a shell reads it: `perl -e 'print 1'`. Text that is cut
/// ends with " [cut]". A program that runs may have written a title over its words: `has_title` keeps one word alone,
/// with zeros after it, as it is.
static inline void put_command(char* to, size_t to_bytes, const char* words, size_t length, bool has_title) {
  static const char cut[] = " [cut]";
  struct TextRoom out = {to, to + to_bytes - sizeof cut, false};
  size_t used = length;
  while (used && words[used - 1] == 0) used--;
  const bool is_title = has_title && memchr(words, 0, used) == NULL;
  if (is_title) put_text(&out, words, used);
  for (size_t i = 0; i < length && !is_title;) {
    const size_t bytes = strnlen(words + i, length - i);
    if (i) put_text(&out, " ", 1);
    const bool assigns = i == 0 && memchr(words, '=', bytes) != NULL;  // a shell would set a variable
    put_shell_word(&out, words + i, bytes, !assigns && is_plain_word(words + i, bytes));
    i += bytes + 1;
  }
  make_utf8(to, (size_t)(out.at - to));
  if (out.is_full) out.at = (char*)memcpy(out.at, cut, sizeof cut - 1) + sizeof cut - 1;
  *out.at = 0;
}

struct Unit {
  char name[4];
  uint64_t factor;
};

/// The units of a quantity. The first is that of a number without a unit; a factor of 0 ends the list.
static const struct Unit units_of_time[] = {
    {"", 1000000000},      {"s", 1000000000},     {"ns", 1}, {"us", 1000}, {"ms", 1000000},
    {"min", 60000000000u}, {"h", 3600000000000u}, {"", 0}};
/// As units_of_time, with a unit.
static const struct Unit units_of_period[] = {{"s", 1000000000}, {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"", 0}};
static const struct Unit units_of_size[] = {{"", 1},          {"K", 1 << 10},   {"M", 1 << 20},   {"G", 1 << 30},
                                            {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"", 0}};
static const struct Unit units_of_count[] = {{"", 1}, {"", 0}};
/// The units of CMTTRACE_KEEP. A number must have a unit, because the unit distinguishes a time from a size.
static const struct Unit units_of_kept_time[] = {
    {"s", 1000000000}, {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"min", 60000000000u}, {"h", 3600000000000u}, {"", 0}};
static const struct Unit units_of_kept_size[] = {{"K", 1 << 10},   {"M", 1 << 20},   {"G", 1 << 30}, {"KiB", 1 << 10},
                                                 {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"", 0}};

/// Reads a whole number with one of the units, such as "10ms", "64M" or "1000". False if the text is not one, or the
/// value exceeds 64 bits.
static inline bool read_quantity(const char* text, const struct Unit* units, uint64_t* value) {
  uint64_t number = 0;
  const char* at = text;
  for (; *at >= '0' && *at <= '9'; at++) {
    if (__builtin_mul_overflow(number, (uint64_t)10, &number)) return false;
    if (__builtin_add_overflow(number, (uint64_t)(*at - '0'), &number)) return false;
  }
  if (at == text) return false;
  for (; units->factor; units++) {
    if (strcmp(units->name, at) == 0) return !__builtin_mul_overflow(number, units->factor, value);
  }
  return false;
}

enum { keep_ns_min = 1000000000, keep_bytes_min = 64 << 10 };

/// The value of CMTTRACE_KEEP_AT: a share of the limit, or a size.
struct KeepAt {
  uint64_t percent, bytes;  ///< 0: not given
};

/// Reads "90%" or "400M". False if the text is neither, or less than 1 % or 64K, or more than 99 %.
static inline bool read_keep_at(const char* text, struct KeepAt* at) {
  static const struct Unit units_of_share[] = {{"%", 1}, {"", 0}};
  at->percent = at->bytes = 0;
  if (read_quantity(text, units_of_share, &at->percent)) return at->percent >= 1 && at->percent <= 99;
  return read_quantity(text, units_of_kept_size, &at->bytes) && at->bytes >= keep_bytes_min;
}

/// The value of CMTTRACE_KEEP.
struct Keep {
  uint64_t ns, bytes;  ///< 0: not given
};

/// Reads a time, a size, or both with a comma between them: "10min", "100M", "10min,1G". False if the text is none of
/// these, or too little.
static inline bool read_keep(const char* text, struct Keep* keep) {
  char part[32];
  keep->ns = keep->bytes = 0;
  for (;;) {
    const size_t length = strcspn(text, ",");
    if (length >= sizeof part) return false;
    memcpy(part, text, length);
    part[length] = 0;
    uint64_t ns, bytes;
    if (keep->ns == 0 && read_quantity(part, units_of_kept_time, &ns) && ns >= keep_ns_min)
      keep->ns = ns;
    else if (keep->bytes == 0 && read_quantity(part, units_of_kept_size, &bytes) && bytes >= keep_bytes_min)
      keep->bytes = bytes;
    else
      return false;
    if (text[length] == 0) return true;
    text += length + 1;
  }
}
