/// The samples of a process's resident memory, each with the bytes that were live at its own event.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cmt/event.h"

namespace cmt::report {

/// Resident and live bytes after one event, which is a sample.
struct ResidentSample {
  std::uint64_t resident_bytes = unknown;  ///< unknown: there is no sample
  std::uint64_t live_bytes = 0;
  std::uint64_t event = 0;
  std::uint64_t position = 0;  ///< on the axis

  bool is_known() const { return resident_bytes != unknown; }
};

/// Samples in a row, and the events from the first one up to the last one.
struct SampleSpan {
  ResidentSample first{}, last{};
  std::uint64_t samples = 0;
  std::uint64_t resident_bytes_min = unknown;  ///< at the samples
  std::uint64_t live_bytes_max = 0;            ///< after any of the events
  std::uint64_t live_bytes_max_before = 0;     ///< the most after any event since the previous sample, up to `first`
};

/// A span at each of whose samples more bytes were resident than were live at any of its events.
struct Retention {
  SampleSpan span;
  std::uint64_t live_bytes_before = 0;  ///< the most live bytes before it

  /// So many bytes were resident at each sample and live at no moment.
  std::uint64_t bytes() const {
    return span.resident_bytes_min > span.live_bytes_max ? span.resident_bytes_min - span.live_bytes_max : 0;
  }
};

/// Collects the samples of one trace. Memory: up to spans_max spans; when there are more, each two become one.
class ResidentSamples {
 public:
  static constexpr std::size_t spans_max = 512;

  /// Takes the live bytes after an event that raised them.
  void note_live(std::uint64_t bytes) {
    if (bytes > live_bytes_max_) live_bytes_max_ = bytes;
  }
  /// Takes a sample.
  void add(const ResidentSample& sample);
  /// To be called once, after the last sample.
  void finish();

  /// The first one with the most resident bytes. Not known if there was no sample.
  const ResidentSample& largest() const { return largest_; }
  /// The sample whose live bytes exceed its resident bytes most; the first of equals. Not known if none has more.
  const ResidentSample& least_backed() const { return least_backed_; }
  /// In order. After finish().
  const std::vector<SampleSpan>& spans() const { return spans_; }

 private:
  void join_pairs();

  std::uint64_t live_bytes_max_ = 0;  // since the last sample
  std::uint64_t samples_a_span_ = 1;
  SampleSpan open_;
  std::vector<SampleSpan> spans_;
  ResidentSample largest_, least_backed_;
};

/// Finds the spans in which memory was retained, the one with the largest product of bytes and samples first. Each has:
///
/// - at least `bytes_min` retained bytes, and at least a quarter of its least resident bytes
///
/// - at least three samples, and a twentieth of all
///
/// - at least a tenth of the largest product of bytes and samples
///
/// The lower-ranked of two spans is dropped if they overlap, or if at least half of the smaller one's bytes was also
/// retained between them.
std::vector<Retention> find_retentions(const std::vector<SampleSpan>& spans, std::uint64_t bytes_min,
                                       std::size_t count_max);

}  // namespace cmt::report
