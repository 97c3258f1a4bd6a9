/// Memory that the recorder and the collector both have: what was recorded and not yet sent when the program was
/// killed. C and C++ alike.
#pragma once

#include <stdint.h>

enum { collector_buffer_bytes = 64 * 1024, collector_end_bytes_max = 64 };

/// The recorder changes `sent` after `used` is 0 again, so the collector, which knows how much it received, finds what
/// is missing exactly: bytes[received - sent .. used).
struct CollectorShared {
  uint64_t sent;  ///< bytes that the socket took before bytes[0]
  uint64_t used;  ///< whole lines in `bytes`
  char bytes[collector_buffer_bytes + collector_end_bytes_max];
};
