// Reads any bytes as logs of other tools: by content, and as the format that the first byte selects. The events must be
// consistent.

#include "fuzz.h"
#include "trace2cmt/input/open_log.h"

using namespace cmt;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto names = logs::format_names();
  const std::string insisted(names[data[0] % names.size()]);
  for (const auto& [format, log] : {std::pair(std::string(), bytes), std::pair(insisted, bytes.substr(1))}) {
    try {
      fuzz::read(trace2cmt::open_log(fuzz::file_of(log), "fuzz", {format, 1}, {}));
    } catch (const FormatError&) {
    }
  }
  return 0;
}
