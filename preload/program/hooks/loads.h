/// Modules that are loaded while the program runs: their words are to be looked at (hooks.h) when the loader has bound
/// them, before the program calls them.
///
/// dlopen looks for a module as its caller's library says, whom it knows by its return address. So our dlopen jumps to
/// the real one, and does not see it return. The thread's next call of an interposed function shows it. While dlopen
/// runs, for constructors and the loader allocate too, its return address is on the stack:
///
///     caller     |          |
///     place  --> | return   |  of dlopen, as long as it runs; then of the caller's next call, or below the stack
///
///                | dlopen   |
///                | ...      |
///                | malloc   |  this one is called by the loader: not yet
///
/// The check costs other calls nothing: the thread's place for a guard contains a special one (interpose.h), and every
/// interposed function looks at that place anyway.
///
/// Allocations by a module's constructors are not seen. Where a module is loaded without dlopen, as the C library does
/// with those of iconv, its words are changed when the next one is loaded with it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

/// Counts modules that could not be reached, in Control. The trace reports them.
struct HookReport;
void loads_report(const struct HookReport* report);
/// Whether the calling thread awaits the end of a load. If it has just ended, its modules are looked at. `frame`: an
/// address in the frame of the interposed function. For the sampler, whose functions do not look at the guard.
bool loads_are_awaited(const void* frame);
