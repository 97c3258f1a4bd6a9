/// A recording is an SQLite file (application id "cmtw", user_version 1) with these tables:
///
///     about          key, value: when the recording began, by which clock, how often it samples, what it measures
///     tick           a moment: when it began and ended, on the monotonic clock since the start and on the wall clock,
///                    and what it cost
///     name           every name once: of mappings, processes and disks
///     process        a row for each pid and start time; first and last tick
///     process_sample a row for each process and tick: figures of statm, io and stat, and the sums of its mappings
///     counter_sample a row for each process and tick: the processor's counters
///     mapping        a range of a process's address space, with its permissions and name
///     mapping_change its figures from this tick on. A row is written when they change, so that an idle mapping costs
///                    nothing; all are null from the tick on at which it is gone
///     system_sample  a row for each tick: figures of meminfo
///     disk_sample    the traffic of a disk, a row when that changed
///
/// A tick is one transaction, so that a recorder that is killed leaves whole ticks. While it records, SQLite keeps its
/// write-ahead log in two files beside the recording; they are removed at the end.
#pragma once

#include <cstdint>
#include <string>

#include "cmtwatch/recording/database.h"

namespace cmt::watch {

constexpr int recording_version = 1;

/// Throws DatabaseError where the file is not a recording, or of an unknown version. `path` is for the message.
void check_recording(Database& database, const std::string& path);

/// Makes the tables in an empty file, or checks a recording that is continued, and prepares it for writing. Throws
/// DatabaseError.
void prepare_recording(Database& database, const std::string& path);

/// Moves the write-ahead log into the file. While another process reads the recording, an empty log stays beside it.
void close_recording(Database& database);

/// Deletes the ticks before `tick`, but not figures that still hold then, and gives the space back. Throws
/// DatabaseError; then nothing is deleted.
void forget_before(Database& database, std::int64_t tick);

}  // namespace cmt::watch
