/// Records which pages of large blocks the program has written to (preload/protocol.h, "Pages of large blocks").
///
/// The kernel is asked when a block has been given, which pages were in memory before; and when it is about to be given
/// back, which are now. Meanwhile the collector asks from outside (preload/collector/pages/scanner.h). In a sandbox the
/// program asks nothing any more.
///
/// Blocks that live for a few ms only would be recorded one after the other, each at its own end. The trace would then
/// never show their sum. Nor would it show in time how a program fills blocks that it keeps. So in a round the live
/// blocks are asked about too, when a twentieth of what lives was allocated since the last round. Neighbours are one
/// question.
///
/// Price. With CMTTRACE_TOUCHED=auto a thread spends a 64th of its time on it at most. The first thread that asks
/// has 2 ms in advance, so that programs which run for a tenth of a second are seen too. All other threads begin with
/// 0.1 ms. The thread asks about a block below 1 MiB at its begin if it can pay for the question at its end too. For
/// blocks below 64 KiB it leaves 0.1 ms for larger ones. All pages of other blocks below 1 MiB are recorded as resident
/// at their begin, as are those of blocks in memory that other blocks have used. A larger block that could not be asked
/// about is recorded so.
///
/// Pages that were never touched cost next to nothing, and those of a reservation of 100 GiB are nearly all such. So a
/// thread asks about a large block in pieces. It can pay for each even if all of the pages are in memory. It then pays
/// what the answer took.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/program/pages/ask.h"
#include "preload/program/pages/large_blocks.h"

/// In a thread: how much time it may spend on asking.
struct AskCredit {
  uint64_t at;  ///< a stamp: when `left` was true; 0: never
  uint64_t left;
};

/// The pages of a block, for an event about it.
struct BlockPages {
  uint32_t flags;  ///< of record_block
  uint64_t bytes;  ///< of the block that begins; else 0
  uint64_t since;  ///< of record_since, if not 0
  struct PageRuns runs;
};

/// Without flags and runs.
void touched_clear(struct BlockPages* pages, uint64_t bytes, uint64_t since);

/// At the process's start. `min`: the least size of a block; 0: nothing is asked. `is_bounded`: in time.
void touched_begin(uint64_t min, bool is_bounded);

/// In a process that begins, a forked one too: its first thread has time in advance.
void touched_begin_process(void);

/// For a block that was allocated, or that a realloc of `given` has returned; `was_zeroed` as in LargeBlock. Returns
/// whether its pages are of interest: then `pages` belongs to the event, and the block is to be opened after it.
bool touched_begins(struct AskCredit* credit, const struct LargeBlock* begun, const struct LargeBlock* given,
                    struct BlockPages* pages);
/// A large block is about to be given back.
void touched_ends(struct AskCredit* credit, const struct LargeBlock* taken);
/// Pages of a noted block were given back to the kernel.
void touched_discarded(const struct LargeBlock* block);
/// It is not, because the realloc has failed. False: it could not be noted once more.
bool touched_lives_on(const struct LargeBlock* given);

enum Touched {
  touched_unknown,  ///< the kernel was not asked, for want of time, or has not answered
  touched_more,     ///< `runs` is full: to be asked again, with the same `asked`
  touched_all,
};
/// The pages of a block that are known, and those that are paid for. Zeroed at first.
struct AskedPages {
  uint64_t known_end, paid_end;
};
/// Asks which pages the program has written to, from page known_end on.
enum Touched touched_ask(struct AskCredit* credit, const struct LargeBlock* block, struct AskedPages* asked,
                         struct PageRuns* runs);

/// Whether so much was allocated since the last round that all open blocks are to be asked about now.
bool touched_begin_round(struct AskCredit* credit);

/// The outcome of touched_ask_in_round.
enum InRound {
  round_is_over,        ///< there is no time for more
  round_has_known,      ///< `runs` are the block's
  round_needs_question  ///< no window can have the block: it is to be asked about by touched_ask
};
/// The runs of a block's pages, from a window. Calls before_question(argument) before the kernel is asked.
enum InRound touched_ask_in_round(struct AskCredit* credit, const struct LargeBlock* block, struct AskWindow* window,
                                  void (*before_question)(void*), void* argument, struct PageRuns* runs);

/// Whether all pages of the block are in the runs.
bool touched_is_whole(const struct LargeBlock* block, const struct PageRuns* runs);
/// Whether one round is enough for a block of that size. A larger one may be filled slowly.
bool touched_is_asked_once(uint64_t bytes);
