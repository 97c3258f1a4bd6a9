/// A recording is an SQLite file (application id "cmtw", user_version 1). What is in it:
///
///     about          key, value: when the recording began, by which clock, how often it samples, what it measures
///     tick           a moment: when it began and ended, on the monotonic clock since the start and on the wall clock,
///                    and what it cost
///     name           every name once: of mappings, processes and disks
///     process        told apart by pid and start; first and last tick
///     process_sample a row a process and tick: what statm, io and stat say, and the sums of its mappings
///     counter_sample a row a process and tick: what the processor has counted
///     mapping        a range of a process's address space, with its permissions and name
///     mapping_change its figures from this tick on; a row is written when they change, so that an idle mapping costs
///                    nothing; all null from the tick on in which it is gone
///     system_sample  a row a tick: what meminfo says
///     disk_sample    what a disk has done, a row when that changed
///
/// A tick is one transaction, so that whatever ends the recorder leaves whole ticks. While it records, two files stand
/// beside the recording (SQLite's write-ahead log); when it ends they are gone.
#pragma once

#include <cstdint>
#include <string>

#include "cmtwatch/recording/database.h"

namespace cmt::watch {

constexpr int recording_version = 1;

/// Throws DatabaseError for what is no recording, or of a version that is not known. `path` is for the message.
void check_recording(Database& database, const std::string& path);

/// Makes the tables of an empty file, or checks those of a recording that is to go on, and begins to write. Throws
/// DatabaseError.
void prepare_recording(Database& database, const std::string& path);

/// Brings the write-ahead log into the file itself. Where somebody reads the recording meanwhile, an empty log stays
/// beside it until they are done.
void close_recording(Database& database);

}  // namespace cmt::watch
