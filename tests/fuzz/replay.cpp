// Replaces libFuzzer in builds without it. It runs the target for each file named and each file in the folders named,
// also cut in half and with a flipped bit. For a .cmt it also runs the target on results of the mutator.

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "lies.h"
#include "tests/sampled_places.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr unsigned lies = cmt::fixture::place_step == 1 ? 10 : 2;  // of each file

void run(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

void replay(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (bytes.size() > 1 << 16) return;
  run(bytes);
  run(bytes.substr(0, bytes.size() / 2));
  if (bytes.empty()) return;
  for (unsigned seed = 0; seed < lies; ++seed) {
    if (const std::string lie = cmt::fuzz::lying(bytes, seed); !lie.empty()) run(lie);
  }
  bytes[bytes.size() * 2 / 3] ^= 4;
  run(bytes);
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = 0;
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      replay(argv[i]);
      ++count;
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      replay(entry.path());
      ++count;
    }
  }
  std::printf("%zu inputs\n", count);
  return count == 0 ? 1 : 0;
}
