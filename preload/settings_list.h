/// The settings of the recorder, in one list for C and C++. The library (preload/program/settings.c), the collector
/// (encoder.cpp) and the launcher (cmttrace/options.cpp) take variables and forms from it. tests/house/man_test.sh
/// compares the manual page with it. To add a setting, add a line here and an entry in man/libcmttrace.1.
#pragma once

/// X(name, variable, option of cmttrace, form, default, help). The option is "" if cmttrace sets the variable by itself
/// or not at all. The default is in the words of the manual page; "" means that the setting is off, or not given.
// clang-format off
#define CMT_SETTINGS(X) \
  X(out, "CMTTRACE_OUT", "output", paths, "%n.%p.trace", "the files of the trace") \
  X(time, "CMTTRACE_TIME", "time", step, "", "record the time of each event") \
  X(stamps, "CMTTRACE_STAMPS", "", stamps, "depends on the processor", "which events read the clock") \
  X(usable, "CMTTRACE_USABLE", "usable", on, "", "record the usable size of each block") \
  X(stacks, "CMTTRACE_STACKS", "", on, "", "record call stacks of allocations") \
  X(stack_frames, "CMTTRACE_STACK_FRAMES", "stacks", frames, "4096", "record at most so many frames of a stack") \
  X(stacks_of_frees, "CMTTRACE_STACKS_OF_FREES", "stacks-of-frees", on, "", "record call stacks of frees, too") \
  X(frames, "CMTTRACE_FRAMES", "frames", interpreters, "auto", "which interpreters' frames are in call stacks") \
  X(pool, "CMTTRACE_POOL", "pool", pool, "", "record the blocks of pools, too") \
  X(start, "CMTTRACE_START", "paused", paused, "", "record nothing until a command starts it") \
  X(control, "CMTTRACE_CONTROL", "control", path, "", "the FIFO for commands") \
  X(rings, "CMTTRACE_RINGS", "rings", path, "", "the file of the rings") \
  X(sample, "CMTTRACE_SAMPLE", "sample", time_limit, "never", "how often resident memory is recorded") \
  X(sample_bytes, "CMTTRACE_SAMPLE_BYTES", "sample-bytes", interval, "", "the sampling interval") \
  X(touched, "CMTTRACE_TOUCHED", "touched", touched, "auto", "the least size of blocks whose touched pages are recorded") \
  X(keep, "CMTTRACE_KEEP", "keep", keep, "", "how much a flight recorder keeps") \
  X(keep_at, "CMTTRACE_KEEP_AT", "keep-at", mark, "", "how full memory is when the kept events are written") \
  X(pprof, "CMTTRACE_PPROF", "pprof", path, "", "the files of profiles for pprof") \
  X(pprof_every, "CMTTRACE_PPROF_EVERY", "pprof-every", duration, "never", "how often a profile is written") \
  X(pprof_files, "CMTTRACE_PPROF_FILES", "pprof-files", files, "60", "how many profiles of a running program are kept") \
  X(max_bytes, "CMTTRACE_MAX_BYTES", "max-bytes", size_limit, "", "the largest trace") \
  X(max_events, "CMTTRACE_MAX_EVENTS", "max-events", count_limit, "", "the most events") \
  X(max_time, "CMTTRACE_MAX_TIME", "max-time", time_limit, "", "the longest recording") \
  X(on_full, "CMTTRACE_ON_FULL", "", full, "wait", "what a thread does whose ring is full") \
  X(spill, "CMTTRACE_SPILL", "", bytes, "4G, but at most a quarter of the disk's free space", \
    "the most bytes that the collector queues in a file") \
  X(wait, "CMTTRACE_WAIT", "", on, "", "the program's end waits for the trace") \
  X(status, "CMTTRACE_STATUS", "", path, "", "the file of figures of each trace") \
  X(child_of, "CMTTRACE_CHILD_OF", "", count, "", "record only children of this process") \
  X(out_of, "CMTTRACE_OUT_OF", "", count, "", "the launcher's process") \
  X(follow, "CMTTRACE_FOLLOW", "", follow, "", "record children of an attached process") \
  X(collector, "CMTTRACE_COLLECTOR", "", path, "cmttrace-collector", "the collector's path") \
  X(shared, "CMTTRACE_SHARED", "", path, "", "the socket of the launcher's shared collector")
// clang-format on

enum Setting {
#define CMT_SETTING(name, ...) setting_##name,
  CMT_SETTINGS(CMT_SETTING)
#undef CMT_SETTING
      settings_count
};

/// The environment variables, by setting.
static const char* const setting_names[settings_count] = {
#define CMT_SETTING(name, variable, ...) variable,
    CMT_SETTINGS(CMT_SETTING)
#undef CMT_SETTING
};

/// The values that a setting may have. The library checks each form, the launcher those of its options.
enum SettingForm {
  form_paths,         ///< up to outputs_max paths with commas between them
  form_path,          ///< one path
  form_on,            ///< 0 or 1
  form_step,          ///< 0, 1, or a time from time_step_ns_min on
  form_stamps,        ///< all or, if the processor has them, sparse
  form_frames,        ///< a number from 1 to setting_frames_max
  form_interpreters,  ///< auto or none
  form_pool,          ///< python, heaptrack and own, with commas between them
  form_paused,        ///< paused
  form_duration,      ///< a time
  form_interval,      ///< a size from sample_bytes_min to sample_bytes_max
  form_touched,       ///< 0, off, auto, or a size of a page or more
  form_keep,          ///< a time, a size, or both with a comma between them
  form_mark,          ///< a share of a limit in percent, or a size
  form_bytes,         ///< a size
  form_count,         ///< a number
  form_files,         ///< a number from 1 on
  form_size_limit,    ///< a size above 0
  form_count_limit,   ///< a number above 0
  form_time_limit,    ///< a time above 0
  form_full,          ///< wait or drop
  form_follow,        ///< 0 or 1, of a process that is attached to
};

/// The value of CMTTRACE_OUT of a recording that has only profiles.
#define CMT_NO_TRACE "/dev/null"

enum { setting_frames_max = 4096, sample_bytes_min = 1, sample_bytes_max = 1 << 30 };
