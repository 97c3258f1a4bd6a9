// cmttrace-collector: text in from a socket on descriptor 0, .cmt out on descriptor 1, and on descriptor 3 the memory
// that holds what the program did not live to send. It is started by libcmttrace.so
// in a traced program whose trace is to be compact, and by nobody else.
//
// The recorder cannot know which event is the last: after each end line something may follow, when an exec failed. So
// an end line comes between NULs, and is held back here until the socket ends. Where the socket ends without one, the
// program was killed, and the trace is truncated.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "cmt/reader.h"
#include "cmt/writer.h"
#include "preload/collector_shared.h"

namespace {

/// Takes the end lines out of the text, and keeps the one that nothing followed.
class EndKeeper {
 public:
  /// What of `bytes` is text.
  std::string text_of(std::string_view bytes) {
    std::string text;
    while (!bytes.empty()) {
      std::string_view part = bytes.substr(0, bytes.find('\0'));
      (inside_ ? end_ : text) += part;
      if (!inside_ && !part.empty()) end_.clear();
      if (part.size() < bytes.size()) start_or_stop();
      bytes.remove_prefix(std::min(part.size() + 1, bytes.size()));
    }
    return text;
  }

  bool has_end() const { return !end_.empty() && !inside_; }
  std::string end() const { return !has_end() ? "#cmt end=truncated\n" : end_; }

 private:
  void start_or_stop() {
    inside_ = !inside_;
    if (inside_) end_.clear();
  }

  std::string end_;
  bool inside_ = false;
};

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// What the program recorded after the `received` bytes, empty where nothing is shared.
std::string unsent(std::uint64_t received) {
  void* memory = ::mmap(nullptr, sizeof(CollectorShared), PROT_READ, MAP_SHARED, 3, 0);
  if (memory == MAP_FAILED) return {};
  const auto* shared = static_cast<const CollectorShared*>(memory);
  std::uint64_t begin = received - shared->sent, end = shared->used;
  return begin < end && end <= sizeof shared->bytes ? std::string(shared->bytes + begin, end - begin) : std::string();
}

void relay(int from, int to) {
  EndKeeper ends;
  std::uint64_t received = 0;
  std::string chunk(64 * 1024, '\0');
  for (ssize_t got = ::read(from, chunk.data(), chunk.size()); got > 0;
       got = ::read(from, chunk.data(), chunk.size())) {
    write_all(to, ends.text_of({chunk.data(), static_cast<std::size_t>(got)}));
    received += static_cast<std::uint64_t>(got);
  }
  if (!ends.has_end()) write_all(to, unsent(received));
  write_all(to, ends.end());
  ::close(to);
}

void encode(int from, int to) {
  cmt::Reader reader(from, "trace");
  cmt::Writer writer(to, reader.header());
  std::uint64_t refused = 0;
  for (auto events = reader.read(); !events.empty(); events = reader.read()) {
    for (const cmt::Event& event : events) refused += !writer.add(event);
  }
  writer.finish(reader.repairs() + refused, reader.truncated());
}

int run() {
  int text[2];
  if (::pipe2(text, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  if (::write(0, "+", 1) != 1) return 1;
  std::thread relaying(relay, 0, text[1]);
  try {
    encode(text[0], 1);
  } catch (...) {
    ::_exit(1);  // the recorder notices that the socket has closed
  }
  relaying.join();
  return 0;
}

}  // namespace

int main() {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return run();
  } catch (const std::exception&) {
    return 1;
  }
}
