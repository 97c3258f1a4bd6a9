/// Starts the collector, hidden from the program.
///
/// A program would notice an ordinary child: wait() returns it, SIGCHLD is sent for it, and if it is orphaned a
/// subreaper inherits it. The kernel hides a child that was cloned with exit signal 0, but exec sets the signal to
/// SIGCHLD again. Hence two processes:
///
///     program  --clone, exit signal 0-->  supervisor  --vfork, exec-->  collector
///
/// The supervisor never calls exec. It shares the program's memory, and costs one page of stack. It has no descriptors,
/// blocks all signals and calls only the kernel. When its child has ended, it sets a variable of ours, and we reap it
/// with __WCLONE. An exec of the program ends the supervisor first. The kernel sends SIGCHLD, whatever the exit signal,
/// for a child whose parent has executed another program since: ps(1), which takes any signal for a fault, would end.
///
/// Each of the two is a process group: signals of the terminal pass them by, and the kernel does not wake a stopped
/// collector when the program ends. They stay in the program's session, where their priority counts against its threads
/// (sched(7), "The autogroup feature").
///
/// No descriptor stays open in the program: it creates the files, the collector inherits them, the rings' memory and a
/// pidfd, and the program closes its own. So a program that closes all descriptors closes none of ours.
#pragma once

#include <stdbool.h>

#include "preload/protocol.h"

/// The names of a supervisor's process and of a collector's, which the kernel cuts at 15 bytes. The file
/// libcmt/trace/files.h has them too. No signal mask identifies a supervisor: a thread that calls pthread_create or
/// fork blocks all signals, too, and its process may end meanwhile.
#define SUPERVISOR_NAME "cmttrace-superv"
#define COLLECTOR_NAME "cmttrace-collec"

/// Creates the files of the trace and the FIFO for commands, writes their paths and the program's description to
/// `control`, and starts the collector. Returns 0, -errno, or collector_has_no_room if address space is limited to less
/// than it needs; does not wait for it.
enum { collector_has_no_room = 1 };
long collector_start(struct Control* control);
/// The file that could not be created, after a failed collector_start(); NULL if the failure was another.
const char* collector_refused_path(void);
/// Says that the file exists and has another type than it must have, or returns NULL.
const char* collector_refused_type(void);

/// Reports to the launcher (CMTTRACE_STATUS) that this process is not recorded. `error`: an errno, or 0. False: there
/// is no launcher, or its file cannot be written.
bool collector_report_refusal(long error);

/// Whether its supervisor has reported its end.
bool collector_is_gone(void);
/// Waits until the supervisor, and so the collector, has ended. Does nothing without a supervisor.
void collector_reap(void);
/// Waits until the supervisor has its name, for 2 s at most. By the name the first process of a container knows whose
/// traces are not written yet. A program can end before its supervisor has run for the first time.
void collector_await_name(void);
/// Ends the supervisor: before an exec, or because the kernel grants some calls only to a process that shares its
/// memory with no other. The collector goes on, and the process that inherits orphans reaps it. Returns whether it has
/// ended one: not if there is none, in a sandbox, or if this process would inherit the collector.
bool collector_end_supervisor(void);
/// In a forked child: the parent's collector is not ours.
void collector_forget(void);
