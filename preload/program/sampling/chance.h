/// The chances of the sampler: random numbers, and exponentials without the mathematical library, which the traced
/// program need not have.
#pragma once

#include <stdint.h>

/// The next number of a xorshift generator (Marsaglia, "Xorshift RNGs", 2003). `state` is not 0.
static inline uint64_t chance_next(uint64_t* state) {
  uint64_t x = *state;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return *state = x;
}

/// A number above 0 and below 1.
static inline double chance_uniform(uint64_t* state) { return ((double)(chance_next(state) >> 12) + 0.5) * 0x1p-52; }

/// -log(u), for 0 < u < 1; the error is below 1e-9. The series of atanh, after the exponent is split off.
static inline double chance_minus_log(double u) {
  union {
    double number;
    uint64_t bits;
  } split = {u};
  int exponent = (int)(split.bits >> 52) - 1023;
  split.bits = (split.bits & 0xfffffffffffffull) | 0x3ff0000000000000ull;  // 1 <= number < 2
  if (split.number > 1.4142135623730951) {
    split.number /= 2;
    exponent++;
  }
  const double x = (split.number - 1) / (split.number + 1), y = x * x;
  const double log_of_number = 2 * x * (1 + y * (1.0 / 3 + y * (1.0 / 5 + y * (1.0 / 7 + y * (1.0 / 9 + y / 11)))));
  return -(exponent * 0.6931471805599453 + log_of_number);
}

/// exp(-x), for x >= 0, by Taylor's series, after powers of 2 are split off.
static inline double chance_exp_minus(double x) {
  if (x > 700) return 0;
  const int power = (int)(x * 1.4426950408889634 + 0.5);
  const double rest = power * 0.6931471805599453 - x;
  double sum = 1;
  for (int i = 12; i > 0; i--) sum = 1 + sum * rest / i;
  const union {
    uint64_t bits;
    double number;
  } scale = {(uint64_t)(1023 - power) << 52};
  return sum * scale.number;
}

/// The chance that a block of `bytes` has a point of a Poisson process with one point in `interval` bytes.
static inline double chance_of_sample(uint64_t bytes, uint64_t interval) {
  const double x = (double)bytes / (double)interval;
  if (x < 1.0 / 64) return x * (1 - x / 2 * (1 - x / 3 * (1 - x / 4)));  // where 1 - exp(-x) would lose digits
  return 1 - chance_exp_minus(x);
}
