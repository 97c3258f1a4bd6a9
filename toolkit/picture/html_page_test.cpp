// Checks base64, the content policy of pages, and that packed data are the same for any number of threads.

#include "toolkit/picture/html_page.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include <algorithm>
#include <string>
#include <string_view>

using namespace cmt::picture;

namespace {

std::string bytes_of_base64(std::string_view text) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned bits = 0, count = 0;
  for (const char digit : text.substr(0, text.find('='))) {
    bits = bits << 6 | static_cast<unsigned>(digits.find(digit));
    if ((count += 6) < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count);
  }
  return bytes;
}

/// The text that zlib reads from one stream of gzip, with its checksum and length. Empty if the bytes are not one
/// stream, or continue after it.
std::string gunzip(std::string packed, std::size_t most) {
  z_stream stream{};
  constexpr int gzip_only = 15 + 16;
  if (inflateInit2(&stream, gzip_only) != Z_OK) return {};
  std::string bytes(most, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  const bool is_whole = inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.avail_in == 0;
  bytes.resize(is_whole ? stream.total_out : 0);
  inflateEnd(&stream);
  return bytes;
}

std::string packed_data(std::string_view json, unsigned jobs) {
  const std::string element = packed_data_element("x", json, jobs);
  const std::size_t begin = element.find('>') + 1;
  return element.substr(begin, element.find('<', begin) - begin);
}

}  // namespace

TEST_CASE("html: base64 is that of RFC 4648") {
  CHECK(base64("").empty());
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foo") == "Zm9v");
  CHECK(base64("foobar") == "Zm9vYmFy");
}

TEST_CASE("html: a page's head allows the digests of its parts") {
  // The SHA-256 of nothing.
  const PagePart empty{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"};
  const std::string head = page_head("a & b", {empty}, {});
  CHECK(head.find("style-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; script-src 'none'\"") != head.npos);
  CHECK(head.find("<title>a &amp; b</title>") != head.npos);
}

TEST_CASE("html: data ends no element") {
  CHECK(data_element("x", "\"</script>\"") ==
        "<script type=\"application/json\" id=\"x\">\"\\u003c/script>\"</script>\n");
  CHECK(packed_data_element("x", "</script>").find("</script>\n") == packed_data_element("x", "</script>").size() - 10);
}

TEST_CASE("html: data that is packed in pieces is one stream, and the same on any number of threads") {
  constexpr std::size_t piece = 1 << 20;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, piece - 1, piece, piece + 1, 3 * piece + 12345}) {
    CAPTURE(size);
    std::string json;
    for (std::uint32_t i = 1; json.size() < size; i = i * 1664525 + 1013904223) json += std::to_string(i >> 20) + ",";
    json.resize(size);
    const std::string packed = packed_data(json, 1);
    CHECK(packed == packed_data(json, 3));
    PackedData in_pieces(2);
    for (std::size_t at = 0; at < size; at += 70'001) in_pieces.append(std::string_view(json).substr(at, 70'001));
    CHECK(base64(in_pieces.finish()) == packed);
    const bool is_same = gunzip(bytes_of_base64(packed), size + 1) == json;
    CHECK(is_same);
  }
}
