// Takes any bytes as .eh_frame_hdr and .eh_frame of a module, and looks up the functions of its table. Windows of any
// size must give the same result, and nothing outside of the bytes may be read.

#include "preload/cfi/cfi.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "fuzz.h"

using namespace cmt;

namespace {

constexpr std::uint64_t base = std::uint64_t{1} << 32;  // where the module is
constexpr std::size_t functions_max = 32, table_at = 12;

struct TestModule {
  std::unique_ptr<std::uint8_t[]> bytes;  // of the exact size, so that a sanitizer sees a read beyond
  std::size_t size = 0, window_max = 0;
};

std::size_t window_of(const void* context, std::uint64_t address, const std::uint8_t** bytes) {
  const auto& module = *static_cast<const TestModule*>(context);
  if (address < base || address - base >= module.size) return 0;
  *bytes = module.bytes.get() + (address - base);
  return std::min(module.size - static_cast<std::size_t>(address - base), module.window_max);
}

/// A stack on which each word is its own address, except that the upper half cannot be read.
bool load(void* /*context*/, std::uint64_t address, std::uint64_t* word) {
  *word = address;
  return address >> 63 == 0;
}

struct Result {
  std::optional<CfiRow> row;
  std::optional<CfiCaller> caller;
};

void check_row(const CfiRow& row) {
  fuzz::promise(row.has_cfa_expression || row.cfa_register < cfi_return, "a row defines the CFA");
  for (const std::uint8_t how : row.how) fuzz::promise(how <= cfi_is_expression, "a register has a known rule");
}

Result look_up(const TestModule& module, std::uint64_t address) {
  const CfiTables tables{base, window_of, &module};
  CfiRegisters registers;
  for (std::uint64_t i = 0; i < cfi_registers; ++i) registers.value[i] = 0x1000 * (i + 1);
  const CfiFrame frame{&tables, &registers, load, nullptr};
  CfiFunction function;
  CfiRow row;
  CfiCaller caller{};
  Result result;
  if (!cfi_find_function(&tables, address, &function)) return result;
  fuzz::promise(address - function.begin < function.bytes, "a function contains the address");
  if (!cfi_make_row(&tables, &function, address, &row)) return result;
  check_row(row);
  result.row = row;
  if (cfi_find_caller(&frame, &row, &caller)) result.caller = caller;
  return result;
}

bool is_same(const Result& a, const Result& b) {
  if (a.row.has_value() != b.row.has_value() || a.caller.has_value() != b.caller.has_value()) return false;
  if (a.row && (a.row->cfa_offset != b.row->cfa_offset || !std::ranges::equal(a.row->value, b.row->value)))
    return false;
  return !a.caller || std::ranges::equal(a.caller->registers.value, b.caller->registers.value);
}

void check_address(TestModule& module, std::uint64_t address) {
  module.window_max = module.size;
  const Result whole = look_up(module, address);
  for (const std::size_t window : {std::size_t{1}, std::size_t{7}}) {
    module.window_max = window;
    fuzz::promise(is_same(look_up(module, address), whole), "small windows give what a large one gives");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  TestModule module{std::make_unique<std::uint8_t[]>(size), size, size};
  std::copy_n(data, size, module.bytes.get());
  for (std::size_t i = 0; i < functions_max && table_at + 8 * i + 4 <= size; ++i) {
    std::int32_t begin;
    std::memcpy(&begin, data + table_at + 8 * i, sizeof begin);
    for (const std::uint64_t offset : {0, 1, 5, 16, 100})
      check_address(module, base + static_cast<std::uint64_t>(std::int64_t{begin}) + offset);
  }
  return 0;
}
