/// How a program hands its recording over to the collector that a launcher shares among the processes of its command
/// (CMTTRACE_SHARED), over a socket of the type SOCK_SEQPACKET.
///
/// The program sends one HandOver, with its descriptors: those of collector_memory, collector_process and
/// collector_output on, in this order. The collector answers with one byte, or closes the connection without one.
///
/// Either of them may be slow or end at any moment. So the one that changes Control::collector from 0 owns the
/// recording. The shared collector puts the id of its thread there, the program collector_is_own.
#pragma once

#include <stdint.h>

#include "preload/protocol.h"
#include "preload/settings_list.h"

struct HandOver {
  char magic[8];      ///< ring_magic
  uint64_t settings;  ///< a hash of the program's settings. The shared collector refuses another than its own
  uint32_t process;
  uint32_t outputs;  ///< as in Control
};

enum { hand_over_descriptors_max = collector_output - collector_memory + outputs_max };

/// In Control::collector: the program starts a collector of its own. No thread of a collector has this id.
static const uint32_t collector_is_own = 1;

/// Adds a text with its final 0 to a sum (FNV-1a).
static inline uint64_t sum_with(uint64_t sum, const char* text) {
  const uint64_t prime = 0x100000001b3;
  for (; *text; text++) sum = (sum ^ (unsigned char)*text) * prime;
  return sum * prime;
}

/// The sum of all settings. `value_of` gives a setting's value, or NULL.
static inline uint64_t sum_of_settings(const char* (*value_of)(enum Setting)) {
  uint64_t sum = 0xcbf29ce484222325;
  for (uint32_t i = 0; i < settings_count; i++) {
    const char* value = value_of((enum Setting)i);
    sum = sum_with(sum_with(sum, value ? "=" : ""), value ? value : "");
  }
  return sum;
}
