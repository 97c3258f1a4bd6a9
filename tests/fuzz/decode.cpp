// Reads any bytes in all ways, which must return the same events or a prefix of them. A file that --verify passes must
// be readable.

#include <algorithm>
#include <atomic>

#include "fuzz.h"
#include "libcmt/trace/source.h"
#include "trace2cmt/inspect/info.h"
#include "trace2cmt/inspect/verify.h"

using namespace cmt;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const fuzz::Lines all = fuzz::read(bytes);
  ReadOptions options;
  options.threads = 2;
  const fuzz::Lines ahead = fuzz::read(bytes, options);
  fuzz::promise(ahead.lines == all.lines && ahead.whole == all.whole, "two threads read what one reads");
  options = {};
  options.addresses = options.times = options.usable = false;
  const fuzz::Lines bare = fuzz::read(bytes, options);
  fuzz::promise(!all.whole || bare.lines.size() == all.lines.size(), "without addresses there are as many events");
  options = {};
  options.stacks = true;
  const fuzz::Lines with_stacks = fuzz::read(bytes, options);
  fuzz::promise(!with_stacks.whole || with_stacks.lines.size() == all.lines.size(),
                "with stacks there are as many events");
  try {
    Reader reader(fuzz::file_of(bytes), "fuzz", options);
    reader.accept_samples();
    reader.read_stacks();
    for (const BlockStart& block : reader.blocks()) {
      if (!block.keyframe || block.first_event == 0) continue;
      const auto origins = reader.impl().source_->list_origins_before(block);
      fuzz::promise(!origins || origins->blocks.size() == reader.impl().source_->list_live_before(block).size(),
                    "each live block has an origin");
    }
    const std::uint64_t middle = all.lines.size() / 2;
    reader.seek(middle);
    const auto events = reader.read();
    const bool there = !events.empty() && middle < all.lines.size() &&
                       to_line(events[0]).substr(0, 3) == all.lines[middle].substr(0, 3);
    fuzz::promise(!all.whole || all.lines.empty() || there, "the middle is where seek() goes");
  } catch (const FormatError&) {
  }
  const int fd = fuzz::file_of(bytes);
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  try {
    std::atomic<std::size_t> count = 0;
    for_each_part(path, {}, 2, [&](std::size_t, std::span<const Event> events) { count += events.size(); });
    fuzz::promise(!all.whole || count == all.lines.size(), "the parts have as many events");
  } catch (const FormatError&) {
  }
  try {
    const trace2cmt::TraceFile file(path, {});
    const auto verdict = trace2cmt::verify(file, 1, [](const std::string&, const std::string&, std::uint64_t) {});
    const bool may_be_log = !bytes.starts_with("\x89\x43MT");  // of a tool that fuzz::read() does not know
    fuzz::promise(verdict.faults != 0 || !all.refused || may_be_log, "what is verified is read");
    trace2cmt::info_of(file, 1);
  } catch (const FormatError&) {
  }
  close(fd);
  return 0;
}
