/// The memory of the rings (preload/protocol.h): created, mapped, backed, and given to threads.
///
/// One sparse file, without a name (memfd) or with one (CMTTRACE_RINGS): Control, 512 rings of 256 KiB, 12,288 of 16
/// KiB. Mapping all of it at the start costs addresses only, and no descriptor has to stay open, which a program could
/// close. Where addresses or file sizes are limited (RLIMIT_AS; RLIMIT_FSIZE, which sends a signal for a file that
/// grows beyond it), it is a few rings of 16 KiB. A memfd does not count against /dev/shm.
#pragma once

#include <stdbool.h>

#include "preload/protocol.h"

/// Creates the rings of this process. Returns 0 or -errno. Their descriptor stays open, for the collector to inherit.
/// `stacks_bytes`: the size of a struct StackShare after them (Control::stacks_at), or 0.
long rings_map(struct Control** control, uint64_t stacks_bytes);
/// The StackShare, backed by memory without `interpreter`; NULL if there is none for it. `address`: where it has to be,
/// or NULL.
void* rings_map_stacks(const struct Control* control, void* address);
/// Backs a part of the file by memory. False: there is none.
bool rings_back(char* begin, uint64_t bytes);
int rings_descriptor(void);
void rings_close_descriptor(void);

/// In a forked child: replaces the parent's rings by memory that nobody shares, because the signal handler that forked
/// may have interrupted a thread that writes to them. Their size is kept, and whether they are paused. A second time
/// nothing is done.
void rings_forget(struct Control* control);

/// In a forked child, before rings_forget(): maps the parent's Control::unrecorded a second time. Returns NULL if there
/// is none.
struct UnrecordedCounts* rings_share_counts(struct Control* control);
void rings_release_counts(const struct UnrecordedCounts* counts);

/// From here on the rings are mapped to where the last ones were, if they fit.
void rings_keep_place(void);
/// Replaces the rings by memory that nobody shares. The recording is over, but a thread that was interrupted in it may
/// still write there. Returns 0 or -errno.
long rings_detach(const struct Control* control);

/// Removes the file of rings that no collector has ever read.
void rings_discard(const struct Control* control);

/// Gives the calling thread a ring: first one whose owner has recorded its exit and is gone, then a new one, last one
/// whose owner is gone. Returns NULL if there is none, or no memory for it. Threads end after they have recorded their
/// exit, because other destructors and libc itself free memory after that. So 1,000 short threads need a few rings;
/// records that the collector has not read yet stay in front of the new owner's.
struct Ring* rings_claim(struct Control* control);
