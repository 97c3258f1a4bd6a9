// Functions of different frames, each with several calls of others. The program that includes this has random_number(),
// and in call_shape() goes on with any function; VISIT_STACK() is what it does with a stack.
#pragma once

#include <alloca.h>

#include <cstdint>

#define KEEP_FRAME __asm__ volatile("" ::: "memory")  // no tail call

namespace {

uint64_t random_number();
int call_shape(int depth);
using Shape = int (*)(int depth);

#define SITES(depth)                                       \
  const int which = static_cast<int>(random_number() % 4); \
  int sum = 0;                                             \
  if (which == 0) sum += call_shape(depth - 1);            \
  if (which == 1) sum += call_shape(depth - 1) * 2;        \
  if (which >= 2) VISIT_STACK();                           \
  if (which == 3) sum -= call_shape(depth - 1);            \
  KEEP_FRAME;                                              \
  return sum

__attribute__((noinline, optimize("omit-frame-pointer"))) int shape_plain(int depth) { SITES(depth); }
__attribute__((noinline, optimize("no-omit-frame-pointer"))) int shape_pointer(int depth) { SITES(depth); }
__attribute__((noinline)) int shape_alloca(int depth) {
  volatile char* block = static_cast<volatile char*>(alloca(16 + random_number() % 3 * 16));
  block[0] = 1;
  SITES(depth);
}
__attribute__((noinline)) int shape_aligned(int depth) {
  alignas(64) volatile char block[64];
  block[0] = 1;
  SITES(depth) + block[0];
}

// Keeps a value of its own in rbp.
__attribute__((noinline, optimize("omit-frame-pointer"))) int shape_uses_rbp(int depth) {
  register uint64_t value __asm__("rbp") = random_number();
  __asm__ volatile("" : "+r"(value));
  SITES(depth) + static_cast<int>(value & 1);
}

}  // namespace
