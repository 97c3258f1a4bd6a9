/// Makes mutants of an input: the same mutant for the same seed.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "libcmt/format/zstd.h"
#include "tests/fuzz/lies.h"

namespace cmt::fuzz {

/// Changes an input in one to four ways. `others` are inputs of the same kind, of which parts are spliced in.
class Mutator {
 public:
  static constexpr std::size_t size_max = std::size_t{1} << 18;

  Mutator(unsigned seed, const std::vector<std::string>& others) : random_(seed), others_(others) {}

  std::string mutate(std::string bytes) {
    if (const std::string lie = below(3) == 0 ? lying(bytes, static_cast<unsigned>(random_())) : std::string();
        !lie.empty())
      return lie;
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) change(bytes);
    if (bytes.size() > size_max) bytes.resize(size_max);
    if (below(16) == 0) return packed_by_zstd(bytes);
    if (below(16) == 0) return packed_by_gzip(bytes);
    return bytes;
  }

 private:
  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }

  void change(std::string& bytes) {
    if (bytes.empty()) return void(bytes += static_cast<char>(random_()));
    switch (below(12)) {
      case 0:
      case 1:
        for (std::size_t flips = 1 + below(8); flips > 0; --flips)
          bytes[below(bytes.size())] ^= static_cast<char>(1u << below(8));
        return;
      case 2:
        return bytes.resize(below(bytes.size()));
      case 3:
        return splice(bytes);
      case 4:
        return repeat_line(bytes);
      case 5:
      case 6:
      case 7:
        return replace_number(bytes);
      case 8:
        return nest(bytes);
      case 9:
        return void(bytes.erase(below(bytes.size()), 1 + below(64)));
      case 10:
        return swap_lines(bytes);
      default:
        return void(bytes.insert(below(bytes.size()), bytes.substr(below(bytes.size()), 1 + below(256))));
    }
  }

  void splice(std::string& bytes) {
    const std::string& other = others_[below(others_.size())];
    bytes = bytes.substr(0, below(bytes.size())) + other.substr(below(other.size()));
  }

  /// The begin and the end of a line, with its LF.
  std::pair<std::size_t, std::size_t> line_at(const std::string& bytes, std::size_t at) const {
    const std::size_t begin = at == 0 ? 0 : bytes.rfind('\n', at - 1) + 1;
    return {begin, std::min(bytes.find('\n', at), bytes.size() - 1) + 1};
  }

  /// Repeats a line, in half of the cases with each number a little larger.
  void repeat_line(std::string& bytes) {
    const auto [begin, end] = line_at(bytes, below(bytes.size()));
    std::string line = bytes.substr(begin, end - begin), lines;
    const bool counts = below(2) == 0;
    std::size_t times = std::size_t{1} << below(16);
    for (times = std::min(times, size_max / std::max<std::size_t>(1, line.size())); times > 0; --times) {
      if (counts) increment(line);
      lines += line;
    }
    bytes.insert(end, lines);
  }

  static void increment(std::string& line) {
    for (std::size_t i = line.size(); i-- > 0;) {
      if (line[i] == '9')
        line[i] = 'a';
      else if ((line[i] >= '0' && line[i] < '9') || (line[i] >= 'a' && line[i] < 'f'))
        ++line[i];
      else if (line[i] == 'f') {
        line[i] = '0';
        continue;
      } else
        continue;
      return;
    }
  }

  void replace_number(std::string& bytes) {
    static constexpr std::array<std::string_view, 16> numbers{"0",
                                                              "1",
                                                              "-1",
                                                              "4294967295",
                                                              "4294967296",
                                                              "9223372036854775807",
                                                              "18446744073709551615",
                                                              "18446744073709551616",
                                                              "1e308",
                                                              "ffffffffffffffff",
                                                              "7fffffffffff",
                                                              "0x",
                                                              "99999999999999999999999999",
                                                              "4611686018427387903",
                                                              "00000001",
                                                              "1.5"};
    const std::size_t at = bytes.find_first_of("0123456789", below(bytes.size()));
    if (at == bytes.npos) return void(bytes[below(bytes.size())] = static_cast<char>(random_()));
    std::size_t end = std::min(bytes.find_first_not_of("0123456789abcdefx", at), bytes.size());
    bytes.replace(at, end - at, numbers[below(numbers.size())]);
  }

  /// Inserts a part many times, or replaces a number by as many nested arrays or objects of JSON.
  void nest(std::string& bytes) {
    static constexpr std::array<std::string_view, 9> parts{"(", "[", "{\"a\":", "\"", "\\", "<", "std::vector<",
                                                           " ", "_Z"};
    const std::string_view part = parts[below(parts.size())];
    std::string deep, ends;
    for (std::size_t depth = std::size_t{1} << below(17); depth > 0 && deep.size() < size_max / 2; --depth) {
      deep += part;
      if (part == "[" || part == "{\"a\":") ends += part == "[" ? ']' : '}';
    }
    const std::size_t number = bytes.find_first_of("0123456789", below(bytes.size()));
    if (ends.empty() || number == bytes.npos) return void(bytes.insert(below(bytes.size()), deep));
    const std::size_t end = std::min(bytes.find_first_not_of("0123456789.", number), bytes.size());
    bytes.replace(number, end - number, deep + "0" + ends);
  }

  void swap_lines(std::string& bytes) {
    const auto [begin, end] = line_at(bytes, below(bytes.size()));
    const std::string line = bytes.substr(begin, end - begin);
    bytes.erase(begin, end - begin);
    bytes.insert(bytes.empty() ? 0 : line_at(bytes, below(bytes.size())).first, line);
  }

  std::string packed_by_zstd(const std::string& bytes) {
    format::Compressor compressor(1);
    std::string packed(compressor.compress(bytes));
    if (below(2) == 0) change(packed);
    return packed;
  }

  std::string packed_by_gzip(const std::string& bytes) {
    constexpr int gzip = 16 + MAX_WBITS;
    z_stream stream{};
    if (deflateInit2(&stream, 1, Z_DEFLATED, gzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) return bytes;
    std::string packed(deflateBound(&stream, bytes.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_out = static_cast<uInt>(packed.size());
    deflate(&stream, Z_FINISH);
    packed.resize(stream.total_out);
    deflateEnd(&stream);
    if (below(2) == 0) change(packed);
    return packed;
  }

  std::mt19937 random_;
  const std::vector<std::string>& others_;
};

}  // namespace cmt::fuzz
