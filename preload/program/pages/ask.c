// Asks the kernel about pages, in the three ways of ask.h.
#include "preload/program/pages/ask.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/ioctl.h>

#include "preload/program/hooks/find.h"
#include "preload/program/kernel.h"

enum {
  pages_at_once = 256,
  pages_at_once_shared = 4096,  // as many as the kernel looks at before it copies its answer
  states_at_once = 32,
  pages_by_move_max = 8,
  pages_by_mincore_max = 4096,
};

/// As in Linux 6.7's fs.h.
struct ScanArguments {
  uint64_t size, flags, start, end, walk_end, regions, regions_max, pages_max;
  uint64_t inverted, all_of, any_of, returned;
};
struct ScanRegion {
  uint64_t start, end, categories;
};
static const unsigned long pagemap_scan = _IOWR('f', 16, struct ScanArguments);
enum { category_present = 1 << 3, category_swapped = 1 << 4, category_zeros = 1 << 5 };

/// __libc_single_threaded of libc: true while the process has one thread. Absent before glibc 2.32.
static const char* is_single_threaded;

void ask_begin(void) { is_single_threaded = find_one("__libc_single_threaded", find_everywhere); }

static bool is_scan_refused;  // by this kernel, or there is no /proc

static bool append_run(struct PageRuns* runs, uint64_t first, uint64_t count, bool is_unsure) {
  struct PageRun* last = runs->count ? &runs->runs[runs->count - 1] : NULL;
  if (last && last->first + last->count == first && last->is_unsure == is_unsure) {
    last->count += count;
    return true;
  }
  if (runs->count == page_runs_max) return false;
  runs->runs[runs->count++] = (struct PageRun){first, count, is_unsure};
  return true;
}

// The calling thread is the only one, and its signal handlers wait: so nobody sees the descriptor, or closes it.
static long scan(struct ScanArguments* arguments) {
  uint64_t before;
  block_signals(&before);
  const long fd = sys_open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  const long found = fd < 0 ? fd : sys(SYS_ioctl, fd, pagemap_scan, arguments);
  if (fd >= 0) sys(SYS_close, fd);
  restore_signals(&before);
  return found;
}

static uint64_t scan_pages(uintptr_t begin, uint64_t from, uint64_t end, bool written, struct PageRuns* runs) {
  struct ScanRegion regions[page_runs_max];
  struct ScanArguments arguments = {
      .size = sizeof arguments,
      .start = begin + from * 4096,
      .end = begin + end * 4096,
      .regions = (uintptr_t)regions,
      .regions_max = page_runs_max - runs->count,
      .inverted = category_zeros,
      .all_of = written ? category_zeros : 0,
      .any_of = category_present | category_swapped,
      .returned = category_zeros,
  };
  const long found = scan(&arguments);
  if (found < 0) {
    if (found != -EINTR && found != -EMFILE && found != -ENFILE) is_scan_refused = true;
    return 0;
  }
  for (long i = 0; i < found; i++)
    append_run(runs, (regions[i].start - begin) / 4096, (regions[i].end - regions[i].start) / 4096, false);
  return found < (long)arguments.regions_max ? end : (arguments.walk_end - begin) / 4096;
}

enum PageState { page_absent, page_written, page_unsure };

// Asks about pages that are in memory. move_pages returns -EFAULT for a page of zeros.
static void find_written(uintptr_t begin, uint64_t first, uint64_t count, uint8_t* states) {
  uintptr_t pages[states_at_once];
  int nodes[states_at_once];
  while (count) {
    uint64_t asked = 0;
    for (uint64_t i = 0; i < count && i < states_at_once; i++) {
      if (states[i] != page_absent) pages[asked++] = begin + (first + i) * 4096;
    }
    const uint64_t done = count < states_at_once ? count : (uint64_t)states_at_once;
    const bool is_known = asked == 0 || sys(SYS_move_pages, 0, asked, pages, NULL, nodes, 0) == 0;
    for (uint64_t i = 0, next = 0; i < done; i++) {
      if (states[i] == page_absent) continue;
      const int node = is_known ? nodes[next++] : -ENOENT;
      states[i] = node >= 0 ? page_written : node == -EFAULT ? page_absent : page_unsure;
    }
    states += done;
    first += done;
    count -= done;
  }
}

static uint64_t look_with(uint8_t* states, uint64_t at_once, uintptr_t begin, uint64_t from, uint64_t end, bool written,
                          struct PageRuns* runs) {
  while (from < end) {
    const uint64_t count = end - from < at_once ? end - from : at_once;
    if (sys(SYS_mincore, begin + from * 4096, count * 4096, states) != 0) return 0;
    for (uint64_t i = 0; i < count; i++) states[i] &= 1;  // page_written
    if (written) find_written(begin, from, count, states);
    for (uint64_t i = 0; i < count; i++) {
      if (states[i] != page_absent && !append_run(runs, from + i, 1, states[i] == page_unsure)) return from + i;
    }
    from += count;
  }
  return end;
}

// Large blocks and windows take a buffer of 4 KiB, so that a page costs a tenth. The stack may be too small for it, and
// so there is one for all. A thread, a signal handler or a forked child that finds it taken uses a small one.
LARGE_VARIABLE static uint8_t shared_states[pages_at_once_shared];
static bool is_shared_taken;

static bool take_shared(void) { return !__atomic_exchange_n(&is_shared_taken, true, __ATOMIC_ACQUIRE); }
static void give_shared_back(void) { __atomic_store_n(&is_shared_taken, false, __ATOMIC_RELEASE); }

static uint64_t look_at_pages(uintptr_t begin, uint64_t from, uint64_t end, bool written, struct PageRuns* runs) {
  uint8_t own[pages_at_once];
  if (end - from <= pages_at_once || !take_shared())
    return look_with(own, pages_at_once, begin, from, end, written, runs);
  const uint64_t known = look_with(shared_states, pages_at_once_shared, begin, from, end, written, runs);
  give_shared_back();
  return known;
}

_Static_assert((int)window_pages_max <= (int)pages_at_once_shared, "the buffer holds a window");

struct AskWindow ask_window_take(void) {
  return (struct AskWindow){.states = take_shared() ? shared_states : NULL};
}

void ask_window_give_back(struct AskWindow* window) {
  if (window->states) give_shared_back();
  window->states = NULL;
}

static bool ask_window(struct AskWindow* window, uintptr_t begin, uint64_t pages) {
  const bool is_known = sys(SYS_mincore, begin, pages * 4096, window->states) == 0;
  window->begin = begin;
  window->end = is_known ? begin + pages * 4096 : begin;
  return is_known;
}

// Memory after the block may not be mapped.
bool ask_window_move(struct AskWindow* window, uintptr_t address, uint64_t bytes) {
  const uintptr_t begin = page_begin(address);
  const uint64_t pages = pages_of_block(address, bytes);
  if (pages > (uint64_t)window_pages_max) return false;
  return (pages < window_pages && ask_window(window, begin, window_pages)) || ask_window(window, begin, pages);
}

bool ask_window_runs(const struct AskWindow* window, uintptr_t address, uint64_t bytes, struct PageRuns* runs) {
  const uint8_t* states = window->states + (page_begin(address) - window->begin) / 4096;
  const uint64_t pages = pages_of_block(address, bytes);
  for (uint64_t i = 0; i < pages; i++)
    if ((states[i] & 1) != 0 && !append_run(runs, i, 1, false)) return false;
  return true;
}

bool ask_scans(uint64_t pages, bool written) {
  const uint64_t least = written ? pages_by_move_max : pages_by_mincore_max;
  return pages > least && !is_scan_refused && is_single_threaded && *is_single_threaded;
}

uint64_t ask_pages(uintptr_t address, uint64_t from, uint64_t end, bool written, struct PageRuns* runs) {
  const uintptr_t begin = page_begin(address);
  const bool may_scan = ask_scans(end - from, written) && runs->count < page_runs_max;
  const uint64_t known = may_scan ? scan_pages(begin, from, end, written, runs) : 0;
  return known ? known : look_at_pages(begin, from, end, written, runs);
}
