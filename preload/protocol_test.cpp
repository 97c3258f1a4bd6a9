#include "preload/protocol.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "preload/text.h"

namespace {

constexpr std::uint32_t index_max = (1u << stack_index_bits) - 1;

std::vector<std::uint32_t> numbered_frames(std::uint32_t count) {
  std::vector<std::uint32_t> frames(count);
  for (std::uint32_t i = 0; i < count; ++i) frames[i] = i % 2 == 0 ? index_max - i : i;
  return frames;
}

std::vector<Slot> encode(const StackRecord& stack, const std::vector<std::uint32_t>& frames) {
  std::array<std::uint32_t, stack_frames_first> first{};
  std::copy_n(frames.begin(), std::min(frames.size(), first.size()), first.begin());
  std::vector<Slot> slots{slot_of_stack(&stack, first.data())};
  for (std::size_t at = stack_frames_first; at < frames.size(); at += stack_frames_more) {
    std::array<std::uint32_t, stack_frames_more> more{};
    std::copy_n(frames.begin() + static_cast<long>(at), std::min(frames.size() - at, more.size()), more.begin());
    slots.push_back(slot_of_frames(more.data()));
  }
  return slots;
}

std::vector<std::uint32_t> decode(const std::vector<Slot>& slots, std::uint32_t added) {
  std::array<std::uint32_t, stack_frames_first> first{};
  std::array<std::uint32_t, stack_frames_more> more{};
  stack_of_slot(slots.data(), first.data());
  std::vector<std::uint32_t> frames(first.begin(), first.end());
  for (std::size_t i = 1; i < slots.size(); ++i) {
    frames_of_slot(&slots[i], more.data());
    frames.insert(frames.end(), more.begin(), more.end());
  }
  frames.resize(added);
  return frames;
}

}  // namespace

TEST_CASE("a stack's records give back what was put into them") {
  for (const std::uint32_t added : {0u, 1u, 4u, 5u, 6u, 11u, 12u, 100u, 4096u}) {
    const StackRecord stack{4096 - added, added, added % stack_numbers, added % 2 == 0, added % 4 < 2};
    const auto frames = numbered_frames(added);
    const auto slots = encode(stack, frames);
    CHECK(slots.size() == stack_slots(added));
    std::array<std::uint32_t, stack_frames_first> first{};
    const StackRecord read = stack_of_slot(slots.data(), first.data());
    CHECK(read.kept == stack.kept);
    CHECK(read.added == stack.added);
    CHECK(read.number == stack.number);
    CHECK(read.is_cut == stack.is_cut);
    CHECK(read.is_apart == stack.is_apart);
    CHECK(decode(slots, added) == frames);
  }
}

TEST_CASE("a stack's records leave the bits of publication alone") {
  const StackRecord stack{8191, 8191, 15, true, true};
  const std::vector<std::uint32_t> frames(stack_frames_more, index_max);
  const Slot first = slot_of_stack(&stack, frames.data()), more = slot_of_frames(frames.data());
  CHECK(slot_kind(first.head) == record_stack);
  CHECK(slot_kind(more.head) == record_frames);
  for (const Slot& slot : {first, more}) CHECK((slot.head & (slot_valid | slot_parity | slot_has_old_block)) == 0);
}

TEST_CASE("a command line is written as a shell reads it, but a title as it is") {
  const auto command = [](std::string_view words, std::size_t room = 64) {
    std::string text(room, 'x');
    put_command(text.data(), text.size(), words.data(), words.size());
    return std::string(text.c_str());
  };
  using namespace std::string_view_literals;
  CHECK(command("perl\0-e\0print 1\0it's\0\0a=b\0"sv) == R"(perl -e 'print 1' 'it'\''s' '' a=b)");
  CHECK(command("perl\0\0-w\0\0"sv) == "perl '' -w ''");
  CHECK(command("nginx: worker process\0\0\0"sv) == "nginx: worker process");
  CHECK(command("a\0b c\xff"sv) == "a 'b c?'");
  CHECK(command("a\0b c\0"sv, 5) == "a 'b");
  CHECK(command(""sv) == "");
  CHECK(command("\0\0"sv) == "");
}
