/// Takes samples at a pace, and not more often than their cost permits.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "toolkit/command/interrupts.h"
#include "toolkit/launch/launch.h"
#include "toolkit/output/fields.h"
#include "toolkit/process/proc_file.h"

namespace cmt::watch {

/// How often samples are taken, and when there are enough.
struct Pace {
  std::int64_t interval_ns = 0;
  double cost_share_max = 1;             ///< of one processor
  std::optional<std::uint64_t> count{};  ///< samples
  std::optional<std::int64_t> duration_ns{};
};

/// The options that `run`, `get` and `wss` have in common.
struct SamplingOptions {
  enum class Form { text, json, csv };

  Pace pace{};
  Form form = Form::text;
  bool pause = false;    ///< processes are stopped while they are measured
  bool verbose = false;  ///< each process or mapping by name
  bool bytes = false;    ///< numbers without unit
  std::string output{};  ///< a file; empty: where the subcommand writes
  std::string plot{};    ///< a picture's file; empty: none
};

/// The moments at which samples are due: every `interval` from the beginning on, however long a sample takes. A moment
/// that passes while a sample is taken is missed, and counted; it is not made up for.
///
/// Each moment adds its share of a processor to a budget, and a sample takes its processor time from it. While the
/// budget is negative, moments are skipped, so that measuring takes no more than that share; they are counted apart. At
/// most one moment's share is carried over.
class SampleClock {
 public:
  /// `share_max`: of one processor's time, above 0. Throws std::system_error.
  SampleClock(std::int64_t interval_ns, double share_max);

  /// Readable, for poll(), when a moment has come.
  int fd() const { return timer_.get(); }

  /// Whether a sample is due now. Call it when fd() is readable.
  bool due();

  /// The processor time of the last sample.
  void took(std::int64_t cpu_ns) { debt_ns_ += static_cast<double>(cpu_ns); }

  std::uint64_t missed() const { return missed_; }
  std::uint64_t skipped() const { return skipped_; }

 private:
  double paid_ns_;  ///< by each moment
  double debt_ns_ = 0;
  process::Fd timer_;
  std::uint64_t missed_ = 0;
  std::uint64_t skipped_ = 0;
};

/// How many samples were taken, and at what cost.
struct SamplingCost {
  std::uint64_t samples = 0;
  std::uint64_t missed = 0;   ///< moments that passed while another sample was taken, or the machine was busy
  std::uint64_t skipped = 0;  ///< moments left out because samples cost more than their share
  std::int64_t elapsed_ns = 0;
  std::int64_t cpu_ns = 0;  ///< processor time of this process meanwhile

  /// ", 3 missed, 7 skipped for their cost"; empty if there are none.
  std::string left_out_text() const;

  double cpu_share() const {
    return elapsed_ns == 0 ? 0 : static_cast<double>(cpu_ns) / static_cast<double>(elapsed_ns);
  }
};

template <class Visitor, output::DescribedAs<SamplingCost> Cost>
void describe(Visitor& field, Cost& cost) {
  field("moments_missed", cost.missed, "passed while another sample was taken, or the machine was busy");
  field("moments_skipped_for_cost", cost.skipped, "left out because samples cost more than --max-cost");
  field("cost_cpu_ns", cost.cpu_ns, "processor time of cmtwatch");
  field("cost_share", cost.cpu_share(), "the same over the elapsed time");
}

/// A descriptor that is waited for beside the clock.
struct Listener {
  enum class Heard { nothing, end, sample_now };  ///< `sample_now`: and hear() is called again after that
  int fd;                                         ///< readable when hear() has something to do; -1: never
  std::function<Heard()> hear;                    ///< `end`: sampling ends
};

/// Ends sampling when a signal asks us to end; calls `resized` when the terminal has another size.
Listener listen_to(command::Interrupts& interrupts, std::function<void()> resized);

/// The same for a command that was launched: passes signals on to it, has a sample taken at its end, and ends sampling
/// when it has ended. Then `ended` says how.
Listener listen_to(launch::RunningCommand& command, std::optional<launch::Ended>& ended, std::function<void()> resized);

/// Takes samples at the pace that is asked for.
class SamplingLoop {
 public:
  /// The result of taking a sample.
  enum class Taken { sample, too_early, nobody_left };
  /// Whether the first sample is taken at once, or an interval after the beginning.
  enum class First { at_once, after_interval };

  /// The time begins here. `pace` outlives it.
  explicit SamplingLoop(const Pace& pace);

  /// Calls `take` at each moment until the pace or a listener says that it is enough, or nobody is left: then it
  /// returns true. A moment that was too early counts as missed.
  bool run(First first, std::span<const Listener> listeners, const std::function<Taken()>& take);

  /// Up to now.
  SamplingCost cost() const;

 private:
  bool enough() const;
  bool take_one(SampleClock& clock, const std::function<Taken()>& take);

  const Pace& pace_;
  std::int64_t begin_ns_;
  std::int64_t cpu_begin_ns_;
  std::uint64_t too_early_ = 0;
  SamplingCost counts_;
};

}  // namespace cmt::watch
