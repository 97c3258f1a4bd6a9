// Draws the points, records samples, and raises the interval when the table of live samples gets full.
#include "preload/program/sampling/sampler.h"

#include "preload/program/block_filter.h"
#include "preload/program/hooks/loads.h"
#include "preload/program/real.h"
#include "preload/program/sampling/chance.h"
#include "preload/program/sampling/probes.h"

enum { doublings_max = 30 };

static struct {
  uint64_t first;  // the interval of the first recording with a sampler; 0: there was none
  bool is_on;
  uint32_t doublings;  // of it
  uint32_t stated;     // those that the trace states
  uint32_t is_rising;  // a thread is raising it
  bool has_over;       // samples have ended while nothing was recorded
} interval;

uint64_t sampler_interval(void) { return interval.is_on ? interval.first << interval.doublings : 0; }

const char* sampler_begin(uint64_t wanted) {
  interval.is_on = false;
  interval.is_rising = 0;
  if (wanted == 0) return NULL;
  if (interval.first != 0 && wanted != interval.first)
    return "the process was sampled before with another interval, which its threads go on counting";
  if (!live_samples_begin() || !block_filter_begin()) return "there is no memory for the table of samples";
  arena_add_to_filter();
  interval.is_on = true;
  interval.first = wanted;
  return NULL;
}

void sampler_begin_process(void) {
  live_samples_clear();
  interval.is_rising = 0;
  interval.stated = interval.doublings;  // as Control::sample_bytes
  interval.has_over = false;
}

void sampler_after_fork(void) {
  thread_self.left = thread_self.left_before_load = 0;
  thread_self.chance = 0;
}

static uint64_t interval_at(uint32_t doublings) { return interval.first << doublings; }
static uint32_t doublings_now(void) { return __atomic_load_n(&interval.doublings, __ATOMIC_ACQUIRE); }

// A thread's first call. Two threads, and a parent and its child, must not get the same numbers.
static void seed(struct Thread* self) {
  const uint64_t odd = 0x9e3779b97f4a7c15ull;
  self->chance = ((uintptr_t)self ^ clock_stamp(false) * odd ^ (uint64_t)generation_page[1] << 40) | 1;
  for (int i = 0; i < 8; i++) chance_next(&self->chance);
}

// A block of more bytes than the distance, rounded down, has the point.
static uint64_t draw_distance(struct Thread* self) {
  self->doublings = (uint8_t)doublings_now();
  return (uint64_t)(chance_minus_log(chance_uniform(&self->chance)) * (double)interval_at(self->doublings));
}

// While a load is awaited, `left` is 0 or 1 in turn. So each call comes here, and the function around another one sees
// a change. The true one is kept aside. Returns whether the countdown has passed the point.
static bool look_at_load(struct Thread* self, uint64_t bytes, const void* frame) {
  self->awaits_load = loads_are_awaited(frame) ? 3 - self->awaits_load : 0;
  return __builtin_sub_overflow(self->left_before_load, bytes, &self->left);
}

bool sampler_draw(uint64_t bytes, const void* frame) {
  struct Thread* self = &thread_self;
  bool is_sample = !self->awaits_load || look_at_load(self, bytes, frame);
  const bool is_first = self->chance == 0;
  if (is_first) seed(self);
  if (is_first && is_sample) {
    const uint64_t passed = 0 - self->left;  // the point that it had was at its begin
    const uint64_t distance = draw_distance(self);
    is_sample = distance < passed;
    if (!is_sample) self->left = distance - passed;
  }
  self->drawn_at = self->doublings;
  if (is_sample) self->left = draw_distance(self);
  if (self->awaits_load) {
    self->left_before_load = self->left;
    self->left = self->awaits_load - 1;
  }
  return is_sample && recording_is_on();
}

static double chance_at(uint64_t bytes, uint32_t doublings) { return chance_of_sample(bytes, interval_at(doublings)); }

// Whether a sample at the interval `before` is one at the interval `now`, too.
static bool stays(uint64_t bytes, uint32_t before, uint32_t now) {
  return before >= now || chance_uniform(&thread_self.chance) * chance_at(bytes, before) < chance_at(bytes, now);
}

static void record_end(const void* block) { record(kind_unsample, block, 0, NULL); }

// For live_samples_visit(): whether the sample ends with the new interval. `now`: its doublings. While nothing is
// recorded it is left as it is.
static bool ends_at(const void* block, struct TakenSample* sample, void* now) {
  const uint32_t doublings = *(const uint32_t*)now;
  if (!recording_is_on()) return false;
  const bool ends = !stays(sample->bytes, sample->doublings, doublings);
  if (ends) record_end(block);
  if (sample->doublings < doublings) sample->doublings = doublings;
  return ends;
}

// Thins the live samples for the interval, and states it. The event comes last: before it, the estimate of live bytes
// is too low, and never too high. If the program pauses the recording meanwhile, the next sample after the pause does
// this.
static void state_interval(void) {
  uint64_t before;
  if (sandbox_entered || __atomic_exchange_n(&interval.is_rising, 1, __ATOMIC_ACQUIRE)) return;
  block_signals(&before);
  uint32_t now = doublings_now();
  live_samples_visit(ends_at, &now);
  if (recording_is_on()) {
    record_long(&(struct Call){.kind = kind_sampling_interval, .size = interval_at(now)}, NULL);
    interval.stated = now;
  }
  __atomic_store_n(&interval.is_rising, 0, __ATOMIC_RELEASE);
  restore_signals(&before);
}

// Doubles the interval. Threads that draw from here on take the new one.
static void raise_interval(void) {
  uint32_t stated = interval.stated;
  if (sandbox_entered || stated >= doublings_max) return;
  if (__atomic_compare_exchange_n(&interval.doublings, &stated, stated + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
  state_interval();
}

// Records the ends that were missed while nothing was recorded.
static void record_missed_ends(void) {
  uint64_t before;
  if (sandbox_entered || !__atomic_exchange_n(&interval.has_over, false, __ATOMIC_ACQUIRE)) return;
  block_signals(&before);
  live_samples_visit_over(record_end);
  restore_signals(&before);
}

// The entry may be another block's by now, which this is right for, too.
static __attribute__((noinline)) void thin_one(struct LiveSample* entry, uint32_t now) {
  uint64_t before;
  if (sandbox_entered) return;
  block_signals(&before);
  live_sample_visit(entry, ends_at, &now);
  restore_signals(&before);
}

static void fill(struct LiveSample* entry, const struct TakenSample* sample) {
  live_samples_fill(entry, *sample);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);  // here or by state_interval(), a new interval is seen
  const uint32_t now = doublings_now();
  if (now != sample->doublings) thin_one(entry, now);
}

bool sampler_add(const struct Call* call, const void* stack_frame) {
  struct Thread* self = &thread_self;
  if (__builtin_expect(interval.has_over, 0)) record_missed_ends();
  if (__builtin_expect(interval.stated != doublings_now(), 0)) state_interval();
  const uint32_t generation = recording_generation();
  struct TakenSample sample = {call_bytes(call), doublings_now(), kind_is_operator_new(call->kind)};
  if (!stays(sample.bytes, self->drawn_at, sample.doublings)) return false;
  struct LiveSample* entry = live_samples_claim(call->address);
  if (!entry) {
    __atomic_fetch_add(&tracing.control->samples_lost, 1, __ATOMIC_RELAXED);
    raise_interval();
    return false;
  }
  record_long(call, stack_frame);
  // A signal handler has forked, and this is the child, which has cleared the table.
  if (generation != recording_generation()) entry = live_samples_claim(call->address);
  if (entry) fill(entry, &sample);
  const double chance = chance_at(sample.bytes, sample.doublings);
  probe_alloc(call->address, sample.bytes, (uint64_t)((double)sample.bytes / chance + 0.5));
  if (live_samples_count() > live_samples_crowded) raise_interval();
  return true;
}

// A forked child that has not begun has its parent's table.
static bool has_table(void) { return recording_generation() != 0; }

bool sampler_find(const void* block, struct TakenSample* sample) {
  return has_table() && live_samples_find(block, sample);
}

bool sampler_take(const void* block, struct TakenSample* sample) {
  if (!has_table()) return false;
  if (recording_is_on()) return live_samples_take(block, sample);
  if (live_samples_end_later(block)) __atomic_store_n(&interval.has_over, true, __ATOMIC_RELEASE);
  return false;
}

bool sampler_put_back(const void* block, const struct TakenSample* sample) {
  struct LiveSample* entry = live_samples_claim(block);
  if (entry) fill(entry, sample);
  return entry != NULL;
}
