// The libraries for .gz, .zst, .xz and .bz2 work alike: each call consumes input and produces output, in both of which
// the caller has room. A Decoder hides their differences.
//
// A library that hides them as well does not serve here:
//
//   libarchive 3.6          does not check gzip's checksum, ignores bytes after a stream, and decodes no zstd with a
//                           window above 128 MiB (`zstd --long=28`)
//
//   Boost.Iostreams 1.74    does not decode such zstd either, reads cut zstd as empty, without an error, and takes
//                           2.3 s for a .gz of 200 MB. This file takes 1.0 s

#include "toolkit/command/open_trace.h"

#include <bzlib.h>
#include <lzma.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <limits>
#include <map>
#include <new>
#include <sstream>
#include <system_error>

#include "libcmt/trace/source.h"
#include "toolkit/command/command_line.h"
#include "toolkit/files/regular_file.h"
#include "toolkit/logs/log_source.h"
#include "toolkit/output/numbers.h"

namespace cmt::command {
namespace {

class Decoder {
 public:
  virtual ~Decoder() = default;

  struct Step {
    std::size_t consumed = 0;  ///< bytes of input
    std::size_t produced = 0;  ///< bytes of output
    bool is_ended = false;     ///< the stream is whole; the next step begins another
    bool is_damaged = false;
  };

  virtual Step step(std::string_view in, char* out, std::size_t room) = 0;

  virtual const char* name() const = 0;

  /// The memory that the stream asked for, mostly for its window. It is touched as far as there is output.
  virtual std::uint64_t memory_bytes() const = 0;
};

/// zlib, liblzma and libbz2 have streams of one shape: pointer and size of the next input, and of the output. A Library
/// names the type of its stream and its functions.
template <class Library>
class StreamDecoder : public Decoder {
 public:
  StreamDecoder() { begin(); }
  ~StreamDecoder() override { Library::end(&stream_); }

  Step step(std::string_view in, char* out, std::size_t room) override {
    set(stream_.next_in, stream_.avail_in, const_cast<char*>(in.data()), in.size());
    set(stream_.next_out, stream_.avail_out, out, room);
    const auto given = stream_.avail_in, wanted = stream_.avail_out;
    const auto status = Library::decode(&stream_);
    const Step step{given - stream_.avail_in, wanted - stream_.avail_out, Library::is_end(status),
                    !Library::is_end(status) && !Library::may_continue(status)};
    if (step.is_ended) {
      Library::end(&stream_);
      begin();
    }
    return step;
  }

  const char* name() const override { return Library::name; }
  std::uint64_t memory_bytes() const override { return Library::memory_bytes(&stream_); }

 private:
  void begin() {
    stream_ = Library::nothing;
    if (!Library::begin(&stream_)) throw std::bad_alloc();
  }

  /// The libraries' pointers to their input are not all const, but they do not write there. zlib and libbz2 count in 32
  /// bits what they are given.
  template <class Byte, class Size>
  static void set(Byte*& next, Size& available, char* bytes, std::size_t size) {
    next = reinterpret_cast<Byte*>(bytes);
    available = static_cast<Size>(std::min<std::size_t>(size, std::numeric_limits<Size>::max()));
  }

  typename Library::Stream stream_;
};

struct Gzip {
  using Stream = z_stream;
  static constexpr const char* name = "gzip";
  static constexpr Stream nothing{};
  static constexpr int gzip_only = 16;

  static bool begin(Stream* stream) { return inflateInit2(stream, MAX_WBITS + gzip_only) == Z_OK; }
  static int decode(Stream* stream) { return inflate(stream, Z_NO_FLUSH); }
  static void end(Stream* stream) { inflateEnd(stream); }
  static std::uint64_t memory_bytes(const Stream*) { return 0; }  // some 40 KB
  static bool is_end(int status) { return status == Z_STREAM_END; }
  static bool may_continue(int status) { return status == Z_OK || status == Z_BUF_ERROR; }
};

struct Xz {
  using Stream = lzma_stream;
  static constexpr const char* name = "xz";
  static constexpr Stream nothing = LZMA_STREAM_INIT;

  static bool begin(Stream* stream) { return lzma_stream_decoder(stream, std::uint64_t{4} << 30, 0) == LZMA_OK; }
  static lzma_ret decode(Stream* stream) { return lzma_code(stream, LZMA_RUN); }
  static void end(Stream* stream) { lzma_end(stream); }
  static std::uint64_t memory_bytes(const Stream* stream) { return lzma_memusage(stream); }
  static bool is_end(lzma_ret status) { return status == LZMA_STREAM_END; }
  static bool may_continue(lzma_ret status) { return status == LZMA_OK || status == LZMA_BUF_ERROR; }
};

struct Bzip2 {
  using Stream = bz_stream;
  static constexpr const char* name = "bzip2";
  static constexpr Stream nothing{};

  static bool begin(Stream* stream) { return BZ2_bzDecompressInit(stream, 0, 0) == BZ_OK; }
  static int decode(Stream* stream) { return BZ2_bzDecompress(stream); }
  static void end(Stream* stream) { BZ2_bzDecompressEnd(stream); }
  static std::uint64_t memory_bytes(const Stream*) { return 0; }  // some 4 MB
  static bool is_end(int status) { return status == BZ_STREAM_END; }
  static bool may_continue(int status) { return status == BZ_OK; }
};

class ZstdDecoder : public Decoder {
 public:
  ZstdDecoder() : stream_(ZSTD_createDCtx()) {
    if (stream_ == nullptr) throw std::bad_alloc();
    // Reads the output of `zstd --long=31`. zstd touches only the part of so large a window that the file needs.
    ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound);
  }
  ~ZstdDecoder() override { ZSTD_freeDCtx(stream_); }

  Step step(std::string_view in, char* out, std::size_t room) override {
    ZSTD_inBuffer from{in.data(), in.size(), 0};
    ZSTD_outBuffer to{out, room, 0};
    const std::size_t status = ZSTD_decompressStream(stream_, &to, &from);
    return {from.pos, to.pos, status == 0, ZSTD_isError(status) != 0};
  }

  const char* name() const override { return "zstd"; }
  std::uint64_t memory_bytes() const override { return ZSTD_sizeof_DCtx(stream_); }

 private:
  ZSTD_DCtx* stream_;
};

template <class Each>
std::unique_ptr<Decoder> make() {
  return std::make_unique<Each>();
}

struct Magic {
  std::string_view bytes;
  std::unique_ptr<Decoder> (*make)();
};

constexpr std::array<Magic, 4> magics{{{"\x1f\x8b\x08", make<StreamDecoder<Gzip>>},
                                       {"\x28\xb5\x2f\xfd", make<ZstdDecoder>},
                                       {std::string_view("\xfd\x37zXZ\0", 6), make<StreamDecoder<Xz>>},
                                       {"BZh", make<StreamDecoder<Bzip2>>}}};
constexpr std::size_t longest_magic = 6;

/// The decoder of a file that begins with these bytes. Null if the file is not compressed.
std::unique_ptr<Decoder> make_decoder(std::string_view start) {
  for (const Magic& magic : magics) {
    if (start.starts_with(magic.bytes)) return magic.make();
  }
  return nullptr;
}

/// The decompressed bytes of an input, which contains one compressed stream after the other.
class DecompressedBytes : public Bytes {
 public:
  DecompressedBytes(std::unique_ptr<Input> compressed, std::unique_ptr<Decoder> decoder)
      : compressed_(std::move(compressed)), decoder_(std::move(decoder)) {}

  std::size_t read(char* to, std::size_t room) override {
    while (!at_end_) {
      const std::string_view in = compressed_->peek(1);
      if (in.empty() && !in_stream_) break;
      const Decoder::Step step = decoder_->step(in, to, room);
      if (step.is_damaged) fail(in_stream_ ? " data is damaged" : " data is followed by something else");
      compressed_->skip(step.consumed);
      consumed_ += step.consumed;
      produced_ += step.produced;
      if (produced_ > large && produced_ / ratio_max > consumed_ && decoder_->memory_bytes() > large)
        fail(" data of few bytes needs much memory: unpack it first if you trust it");
      in_stream_ = !step.is_ended;
      at_end_ = in.empty() && step.produced == 0;
      if (step.produced != 0) return step.produced;
    }
    at_end_ = true;
    return 0;
  }

  std::string missing() const override {
    return in_stream_ && at_end_ ? std::string(decoder_->name()) + " data is cut off" : std::string();
  }

  std::uint64_t taken() const override { return compressed_->offset(); }
  std::uint64_t size() const override { return compressed_->size(); }

 private:
  // A few KB can ask for a window of 2 GiB and fill it. A trace that needs so much is compressed less.
  static constexpr std::uint64_t large = std::uint64_t{32} << 20, ratio_max = 1000;

  [[noreturn]] void fail(const char* what) const {
    throw FormatError(compressed_->place(compressed_->offset()), std::string(decoder_->name()) + what);
  }

  std::unique_ptr<Input> compressed_;
  std::unique_ptr<Decoder> decoder_;
  std::uint64_t consumed_ = 0, produced_ = 0;
  bool in_stream_ = true;
  bool at_end_ = false;
};

}  // namespace

std::string_view read_whole(Input& input) {
  constexpr std::size_t ratio_max = 100;
  for (std::size_t wanted = std::size_t{32} << 20;; wanted *= 2) {
    const std::string_view text = input.peek(wanted);
    if (text.size() < wanted) return text;
    const std::uint64_t compressed = input.file_taken();  // 0: it is not
    if (compressed != 0 && text.size() / ratio_max > compressed)
      throw FormatError(input.name(), "unpacks to more than 100 times its size; decompress it first if you trust it");
  }
}

int open_or_wait(const std::string& path) {
  const int fd = open_input(path);
  if (path == "-" && isatty(fd) == 1)
    complain(program_invocation_short_name, "waits for a trace from the terminal: give a FILE, or end with Ctrl-D");
  return fd;
}

std::unique_ptr<Input> open_decompressed(const std::string& path) {
  return open_decompressed(open_or_wait(path), path);
}

std::unique_ptr<Input> open_decompressed(int fd, const std::string& name) {
  auto input = std::make_unique<Input>(fd, name);
  std::unique_ptr<Decoder> decoder = make_decoder(input->peek(longest_magic));
  if (!decoder) return input;
  return std::make_unique<Input>(std::make_unique<DecompressedBytes>(std::move(input), std::move(decoder)), name);
}

Reader open_trace(const std::string& path, ReadOptions options, Samples samples) {
  return open_trace(open_or_wait(path), path, std::move(options), {}, samples);
}

Reader open_trace(int fd, const std::string& name, ReadOptions options) {
  return open_trace(fd, name, std::move(options), {});
}

Reader open_trace(int fd, const std::string& name, ReadOptions options, const logs::From& from, Samples samples) {
  const auto choose = [&](std::unique_ptr<Input> input, const ReadOptions& read_options, DefectLog& log) {
    return logs::choose_any_source(std::move(input), from, read_options, log);
  };
  std::unique_ptr<Input> input = open_decompressed(fd, name);
  if (input_name(name) == input_name("-") && input->peek(1).empty() && input->missing().empty())
    throw FormatError(input_name(name), "the trace is empty");
  Reader reader(std::make_unique<Reader::Impl>(std::move(input), std::move(options), choose));
  if (samples == Samples::refused) refuse_samples(name, reader.header());
  reader.accept_samples();
  return reader;
}

void refuse_samples(const std::string& name, const Header& header) {
  if (header.sampled() == 0) return;
  throw FormatError(input_name(name), "a sampled trace (" + sampling_text(header) +
                                          ") lacks most blocks, so this cannot be computed; cmtreport and lifetimes "
                                          "--by estimate from it");
}

std::string sampling_text(const Header& header) {
  assert(header.sampled() != 0);
  return "a sample per " + output::bytes_text(header.sampled());
}

std::uint64_t recorded_ns(const Header& header, const std::vector<RunStretch>& stretches) {
  std::uint64_t sum = 0;
  if (header.find("slice")) return sum;  // its stretches are those of the whole recording
  for (const RunStretch& stretch : stretches) sum += std::min(stretch.elapsed_ns, stretch_ns_limit - sum);
  return sum;
}

std::uint64_t lost_events(const Header& header, const Repairs& repairs) {
  const std::optional<std::string_view> recorder = header.find("recorder");
  return recorder && recorder->starts_with("libcmttrace") ? repairs.other : 0;
}

std::string memory_text(const Header& header) {
  std::istringstream words{std::string(header.find("memory").value_or(""))};
  std::string watched;
  std::map<std::string, std::uint64_t> figures;
  words >> watched;
  for (std::string word; words >> word;) {
    const std::size_t sign = word.find('=');
    std::uint64_t value = 0;
    if (sign == word.npos) continue;
    const auto [end, error] = std::from_chars(word.data() + sign + 1, word.data() + word.size(), value);
    if (error == std::errc()) figures[word.substr(0, sign)] = value;
  }
  if (!figures.contains("used") || !figures.contains("anonymous")) return "";
  const std::string whose = watched == "group"     ? "the control group"
                            : watched == "machine" ? "the machine"
                                                   : "the process";
  const auto bytes = [&](const char* name) { return output::bytes_text(figures[name]); };
  std::string text = figures.contains("limit")
                         ? bytes("used") + " of " + whose + "'s " + bytes("limit") + " were in use"
                         : whose + " had " + bytes("used") + " in use";
  if (figures.contains("at")) text += " at " + output::time_text(static_cast<double>(figures["at"]));
  text += ": " + bytes("anonymous") + " anonymous";
  if (figures["recorder"] != 0) text += ", of which the recorder had " + bytes("recorder");
  if (figures["swapped"] != 0) text += "; " + bytes("swapped") + " on swap";
  if (figures["kills"] != 0)
    text += "; the kernel killed " + output::counted(figures["kills"], "process") + " for lack of memory";
  return text;
}

std::string missing_end(const std::string& path, bool has_events, const std::string& otherwise) {
  try {
    if (has_recorder(files::open_regular_file(path).get()))
      return std::string("is still being recorded") +
             (has_events ? "; its part so far was read" : ", and has no events yet");
  } catch (const std::exception&) {  // no file
  }
  return otherwise;
}

bool can_be_read_again(const std::string& path) {
  std::error_code error;
  return path != "-" && std::filesystem::is_regular_file(path, error);
}

}  // namespace cmt::command
