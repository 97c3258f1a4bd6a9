#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

namespace cmt::command {

/// One way of compression, decompressed step by step.
class Codec {
 public:
  virtual ~Codec() = default;

  struct Step {
    std::size_t taken = 0;  ///< bytes of the input used up
    std::size_t given = 0;  ///< bytes of output made
    bool is_ended = false;  ///< the stream, or one of several behind each other, is whole
    bool is_damaged = false;
  };

  /// Goes on where it stopped; behind a whole stream with the next one.
  virtual Step step(std::string_view in, char* out, std::size_t room) = 0;

  virtual const char* name() const = 0;
};

/// How many bytes tell whether a file is compressed.
inline constexpr std::size_t codec_magic_size = 6;

/// The codec of a file that begins so (gzip, zstd, xz or bzip2); null where it is none.
std::unique_ptr<Codec> find_codec(std::string_view start);

}  // namespace cmt::command
