/// The Python frames of a thread, remembered from capture to capture. Nearly all are as they were, so a capture
/// compares each frame's place and instruction with what is remembered, and looks only the changed ones up.
///
///     remembered   main:10   run:7   load:41                       outermost first
///
///     now          main:10   run:8   load:41   parse:3             first = 1, frames = 4
///
/// All are compared, from the innermost outwards: frames are used again in place, so that an unchanged frame may have
/// another caller.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { chain_frames_max = 4096, chain_near_max = 256 };

/// The part of a frame that each capture compares.
struct PlacedFrame {
  uintptr_t frame;
  uintptr_t line;  ///< changes with the frame's line, and whether it begins a run
};

struct PythonFrame {
  uintptr_t code;
  uint32_t index;  ///< as records have it; 0: it has no code
  bool begins_run;
};

/// An index that was looked up.
struct NearLine {
  uint64_t key;
  uint32_t index;
};

/// Zeroed memory remembers nothing.
struct Chain {
  int32_t frames;
  uint32_t epoch;  ///< of names.h
  struct NearLine near[chain_near_max];
  struct PlacedFrame placed[chain_frames_max];
  struct PythonFrame frame[chain_frames_max];
};

/// Captures the frames of the calling thread. Returns how many outer ones are as before; -1: there are more than
/// chain_frames_max.
int chain_capture(struct Chain* chain, uintptr_t innermost) __attribute__((visibility("hidden")));

static inline void chain_forget(struct Chain* chain) { chain->frames = 0; }
