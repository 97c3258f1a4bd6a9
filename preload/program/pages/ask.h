/// Asks the kernel which pages of a block are in memory. Opens no descriptor that another thread could see, and
/// does not read the block, which a program may have protected.
///
///     mincore(2)     In memory or not; a page of zeros that was only read counts as in memory. 0.8 us, and 3 ns a
///                    page. A page that was never touched takes 0.8 ns.
///
///     PAGEMAP_SCAN   Reports such pages apart: 4 us, and 3 ns a page in memory; others are free. Opens and closes
///                    /proc/self/pagemap, with signals blocked, and so only where the process has one thread.
///
///     move_pages(2)  Reports them apart too, and moves nothing: 100 to 400 ns a page.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/protocol.h"

enum { page_runs_max = 24 };

/// Pages of a block, counted from the one in which it begins.
struct PageRun {
  uint64_t first, count;
  bool is_unsure;  ///< in memory, but it is not known whether they were only read
};

struct PageRuns {
  uint32_t count;
  struct PageRun runs[page_runs_max];
};

static inline uintptr_t page_begin(uintptr_t address) { return address & ~(uintptr_t)4095; }

static inline uint64_t pages_of_block(uintptr_t address, uint64_t bytes) {
  return (address % 4096 + bytes + 4095) / 4096;
}

/// Before the first question.
void ask_begin(void);

/// Whether so many pages are asked about by PAGEMAP_SCAN. `written`: pages that were only read are to be excluded.
bool ask_scans(uint64_t pages, bool written);

/// Appends the runs of pages in memory from page `from` up to `end`, as many as there is room for. Returns the page up
/// to which they are known, or 0 if the kernel did not answer. `written`: not those that were only read.
uint64_t ask_pages(uintptr_t address, uint64_t from, uint64_t end, bool written, struct PageRuns* runs);

enum { window_pages = 256, window_pages_max = 4096 };

/// The answer of mincore about neighbouring blocks: one question about 1 MiB costs as much as one about a block.
struct AskWindow {
  uintptr_t begin, end;  ///< the addresses that are known
  uint8_t* states;       ///< a byte for each page; NULL: another thread has the memory for it
};
struct AskWindow ask_window_take(void);
void ask_window_give_back(struct AskWindow* window);
/// Whether the window has all pages of a block.
static inline bool ask_window_has(const struct AskWindow* window, uintptr_t address, uint64_t bytes) {
  return page_begin(address) >= window->begin && address + bytes <= window->end;
}
/// Asks anew, from the block's first page on. False: the kernel did not answer, or the block is too large.
bool ask_window_move(struct AskWindow* window, uintptr_t address, uint64_t bytes);
/// The runs of pages in memory of a block that the window has. False: they are too many.
bool ask_window_runs(const struct AskWindow* window, uintptr_t address, uint64_t bytes, struct PageRuns* runs);
