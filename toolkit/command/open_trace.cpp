#include "toolkit/command/open_trace.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <vector>

#include "libcmt/trace/source.h"
#include "toolkit/command/codecs.h"

namespace cmt::command {
namespace {

/// Reads what is left of `packed` as one codec's streams, one behind the other.
class Unpacked : public Bytes {
 public:
  Unpacked(std::unique_ptr<Input> packed, std::unique_ptr<Codec> codec)
      : packed_(std::move(packed)), codec_(std::move(codec)) {}

  std::size_t read(char* to, std::size_t room) override {
    while (!at_end_) {
      const std::string_view in = packed_->peek(1);
      if (in.empty() && !is_inside_) break;
      const bool is_last = in.empty();
      const Codec::Step step = codec_->step(in, to, room);
      if (step.is_damaged) fail(is_inside_ ? " data is damaged" : " data is followed by something else");
      packed_->skip(step.taken);
      is_inside_ = !step.is_ended;
      at_end_ = is_last && step.given == 0;
      if (step.given != 0) return step.given;
    }
    at_end_ = true;
    return 0;
  }

  std::string missing() const override {
    return is_inside_ && at_end_ ? std::string(codec_->name()) + " data is cut off" : std::string();
  }

  std::uint64_t taken() const override { return packed_->offset(); }
  std::uint64_t size() const override { return packed_->size(); }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw FormatError(packed_->place(packed_->offset()), std::string(codec_->name()) + what);
  }

  std::unique_ptr<Input> packed_;
  std::unique_ptr<Codec> codec_;
  bool is_inside_ = true;
  bool at_end_ = false;
};

/// A file's first bytes; `is_taken` says whether they had to be taken from it (a pipe).
std::string first_bytes(int fd, const std::string& name, bool& is_taken) {
  std::string start(codec_magic_size, '\0');
  std::size_t got = 0;
  struct stat status;
  const off_t position = lseek(fd, 0, SEEK_CUR);
  is_taken = fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || position < 0;
  while (got < start.size()) {
    const ssize_t n = is_taken ? read(fd, start.data() + got, start.size() - got)
                               : pread(fd, start.data() + got, start.size() - got, position + static_cast<off_t>(got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw std::system_error(errno, std::generic_category(), name == "-" ? "standard input" : name);
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  start.resize(got);
  return start;
}

}  // namespace

std::unique_ptr<Input> open_unpacked(const std::string& path) { return open_unpacked(open_input(path), path); }

std::unique_ptr<Input> open_unpacked(int fd, const std::string& name) {
  bool is_taken = false;
  const std::string start = first_bytes(fd, name, is_taken);
  auto input = std::make_unique<Input>(fd, name, is_taken ? start : std::string());
  std::unique_ptr<Codec> codec = find_codec(start);
  if (!codec) return input;
  return std::make_unique<Input>(std::make_unique<Unpacked>(std::move(input), std::move(codec)), name);
}

Reader open_trace(const std::string& path, ReadOptions options) {
  return open_trace(open_input(path), path, std::move(options));
}

Reader open_trace(int fd, const std::string& name, ReadOptions options) {
  return Reader(std::make_unique<Reader::Impl>(open_unpacked(fd, name), std::move(options), choose_source));
}

}  // namespace cmt::command
