/// Judges how live bytes change over the moments of a trace: leaks, growth and short peaks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cmtreport/findings/functions.h"
#include "cmtreport/report/recording.h"

namespace cmt::report {

/// The places of all moments by events and by time. Moment 0 is at 0. By one of them, moments are at even distances.
struct MomentPlaces {
  std::vector<std::uint64_t> events{};
  std::vector<std::uint64_t> times_ns{};  ///< empty: not known, or too coarse
  bool are_even_by_time = false;
};
/// Returns the places of a recording's moments. Several processes have no times here: each leaks at its own pace.
MomentPlaces places_of(const Recording& recording, const Moments& moments);

/// The memory that a function allocated in the first nine tenths of the recording up to `end` and never freed.
struct StillLive {
  std::size_t moment = 0;  ///< the end of the nine tenths
  std::size_t last = 0;    ///< the first moment after the allocation of the last of these blocks
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
  std::uint64_t largest_block = 0;  ///< bytes of the largest; 0: it was allocated later
  bool is_steady = false;           ///< whether it is a leak, as below
  double begin = 0;                 ///< of a leak, the part of the time up to `end` after which it begins; 0: not known
  bool is_by_events = false;        ///< the nine tenths are those of the events, of moments that are even by time
};
/// Finds out whether a function leaks steadily up to `end`. All of the first nine tenths but at most one have to add at
/// least a quarter of their even part.
///
///     time     0----------------|-------------------1     a program starts, then serves, and leaks from | on
///     events   0-|----------------------------------1
///
/// Tenths of the time suffice. Tenths of the events suffice if the time does not contradict:
/// - `end` is in the last third of the recording's time.
/// - The last three tenths of the time up to `end` add a quarter of their even part. A program that loads a table and
/// then
///   waits has nearly all of its events in the first moments. It is no leak.
/// - If moments are even by time, five of its ten tenths add as much. A program that computes, and fills a table in the
///   end, does not leak.
/// Without times, the events alone decide.
StillLive still_live_of(const FunctionSeries& series, std::size_t end, const MomentPlaces& places);

/// How live bytes rose over the moments up to `end`.
struct Growth {
  std::size_t first_third = 0;  ///< moments where the first third ends and the last one begins
  std::size_t last_third = 0;
  std::uint64_t first_mean = 0;  ///< of live bytes at the moments of that third
  std::uint64_t last_mean = 0;
  std::uint64_t recording_end = 0;  ///< live bytes at the last moment of all
  bool is_freed = false;            ///< by then a tenth or more is gone
};
/// Returns nullopt if live bytes do not rise steadily. The moments are divided into twelfths. In a steady rise, at
/// least 9 of the 11 steps between twelfths rise. No step loses more than a twentieth of the whole gain, or has more
/// than half of it. The last third has at least half of an even part of the gain.
std::optional<Growth> growth_of(const FunctionSeries& series, std::size_t end);

/// Whether live bytes of two functions rise alike. Each function's live bytes are taken as a share of its live bytes at
/// `end`. At no moment up to `end` do the shares differ by more than a twentieth.
bool rise_alike(const FunctionSeries& a, const FunctionSeries& b, std::size_t end);

/// A peak that lasts only for a short time.
struct Burst {
  std::size_t begin = 0, end = 0;  ///< moments between which live bytes are above half of the peak
};
/// Returns nullopt if live bytes are that high for more than a twentieth of the moments, or several times.
std::optional<Burst> burst_of(const std::vector<std::uint64_t>& peak_bytes);

}  // namespace cmt::report
