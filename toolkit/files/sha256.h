/// SHA-256 of texts and files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cmt::files {

/// SHA-256 (FIPS 180-4), of bytes that come in pieces.
class Sha256 {
 public:
  void add(std::string_view bytes);

  /// In 64 hexadecimal digits. To be called once.
  std::string hex_digest();

 private:
  void add_block(const unsigned char* block);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> rest_{};  ///< bytes that do not fill a block yet
  std::uint64_t length_ = 0;
};

std::string sha256(std::string_view bytes);

/// The digest of a file's bytes. Throws std::system_error, which names the path.
std::string sha256_of_file(const std::string& path);

}  // namespace cmt::files
