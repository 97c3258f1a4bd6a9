#include "rep_sink.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <vector>

#include "cmt/error.h"
#include "libcmt/trace/files.h"

namespace trace2cmt {
namespace {

constexpr std::size_t rep_buffer_bytes = 64 * 1024;
constexpr std::uint64_t weight = 1;

}  // namespace

RepSink::RepSink(int fd, Say say) : fd_(fd), say_(std::move(say)), body_(std::tmpfile(), std::fclose) {
  if (body_ == nullptr) throw std::system_error(errno, std::generic_category(), "a temporary file");
}

void RepSink::put(const cmt::Event& event, const cmt::format::LiveBlock* old) {
  const PlainCall call = calls_.nearest(event, old != nullptr);
  switch (call.kind) {
    case PlainCall::Kind::none:
      return;
    case PlainCall::Kind::malloc:
      ids_.insert({call.tag, id_count_});
      return put_line('a', id_count_++, call.size);
    case PlainCall::Kind::realloc: {
      const std::uint64_t id = ids_.erase(call.old_tag)->id;
      ids_.insert({call.tag, id});
      return put_line('r', id, call.size);
    }
    case PlainCall::Kind::free:
      return put_line('f', ids_.erase(call.old_tag)->id, 0);
  }
}

void RepSink::put_line(char operation, std::uint64_t id, std::uint64_t size) {
  if (++operations_ > number_limit) throw cmt::FormatError("", "more operations than a .rep can number");
  buffer_ += operation;
  buffer_ += ' ';
  buffer_ += std::to_string(id);
  if (operation != 'f') buffer_ += ' ' + std::to_string(size);
  buffer_ += '\n';
  if (buffer_.size() >= rep_buffer_bytes) flush();
}

void RepSink::flush() {
  if (std::fwrite(buffer_.data(), 1, buffer_.size(), body_.get()) != buffer_.size()) {
    throw std::system_error(errno, std::generic_category(), "a temporary file");
  }
  buffer_.clear();
}

void RepSink::free_the_rest() {
  std::vector<std::uint64_t> alive;
  ids_.for_each([&](const Named& block) { alive.push_back(block.id); });
  std::sort(alive.begin(), alive.end());
  for (const std::uint64_t id : alive) {
    calls_.count(Loss::alive_at_end);
    put_line('f', id, 0);
  }
}

void RepSink::write_file() {
  cmt::Output output(fd_);
  for (const std::uint64_t number :
       {std::min(totals().peak_live_bytes, number_limit), id_count_, operations_, weight}) {
    output.write(std::to_string(number) + "\n");
  }
  std::rewind(body_.get());
  std::array<char, rep_buffer_bytes> part;
  while (const std::size_t size = std::fread(part.data(), 1, part.size(), body_.get())) {
    output.write({part.data(), size});
  }
  if (std::ferror(body_.get())) throw std::system_error(errno, std::generic_category(), "a temporary file");
}

void RepSink::finish(const cmt::Repairs&, bool) {
  free_the_rest();
  flush();
  if (std::fflush(body_.get()) != 0) throw std::system_error(errno, std::generic_category(), "a temporary file");
  write_file();
  calls_.report("rep", say_);
}

}  // namespace trace2cmt
