#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "filter.h"

namespace trace2cmt {

/// Takes out of a trace what says whose it is, and leaves what a replay needs.
///
/// Addresses go: with address space randomisation they identify a run, and a library's version by its layout. Names go:
/// of the program, its command line, process, host and start, and all metadata that are not known to be harmless;
/// labels of marks and threads become numbers, equal ones equal. Times begin with 0 at the first event. Kinds, sizes,
/// alignments, threads' numbers, tags, differences of time and usable sizes stay. They are a fingerprint too: who has
/// the program can recognise it.
class Anonymise : public Filter {
 public:
  void change(cmt::Header& header) override;
  void add(const cmt::Event& event, const Emit& emit) override;

 private:
  const std::string& number_of(std::string_view label);

  std::uint64_t first_time_ns_ = cmt::unknown;
  std::unordered_map<std::string, std::string> labels_;
};

}  // namespace trace2cmt
