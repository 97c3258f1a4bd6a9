/// Sizes, durations and counts as the environment has them: "10ms", "64M", "1000". C and C++ alike: the program
/// complains about what is none, the collector uses the others.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct Unit {
  char name[4];
  uint64_t factor;
};

/// Each ends with a factor of 0. The first is that of a number without a unit.
static const struct Unit units_of_time[] = {{"", 1000000000}, {"s", 1000000000},     {"ns", 1}, {"us", 1000},
                                            {"ms", 1000000},  {"min", 60000000000u}, {"", 0}};
static const struct Unit units_of_size[] = {{"", 1},          {"K", 1 << 10},   {"M", 1 << 20},   {"G", 1 << 30},
                                            {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"", 0}};
static const struct Unit units_of_count[] = {{"", 1}, {"", 0}};

/// False where the text is not a whole number with one of the units, or is too large.
static inline bool quantity_read(const char* text, const struct Unit* units, uint64_t* value) {
  uint64_t number = 0;
  const char* at = text;
  for (; *at >= '0' && *at <= '9'; at++) {
    if (__builtin_mul_overflow(number, (uint64_t)10, &number)) return false;
    if (__builtin_add_overflow(number, (uint64_t)(*at - '0'), &number)) return false;
  }
  if (at == text) return false;
  for (; units->factor; units++) {
    if (strcmp(units->name, at) == 0) return !__builtin_mul_overflow(number, units->factor, value);
  }
  return false;
}
