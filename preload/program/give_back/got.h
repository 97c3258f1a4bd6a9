/// Puts functions of ours in place of others in the modules that are loaded, by their words of the global offset table.
/// Needed for a function that may be absent: if the tracer exported `mallctl`, a program that asks whether there is one
/// (a weak symbol) would believe that it runs on jemalloc.
///
/// Not seen: a module that is loaded later, and who has the function's address otherwise, by dlsym(3) or in data.
#pragma once

typedef void AnyFunction(void);
struct GotHook {
  const char* name;
  AnyFunction* real;  ///< NULL: there is none, and nothing is replaced
  AnyFunction* ours;
};

/// To be called while the process has one thread.
void got_replace(const struct GotHook* hooks, int count);
