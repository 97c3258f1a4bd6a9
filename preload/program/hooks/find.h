/// The functions of other modules, by name.
///
/// The order is that in which the loader has the modules: the program, preloaded libraries, then what they need. The
/// order is that of the global search scope. Modules that were loaded while the program ran come after it.
#pragma once

#include "preload/program/hooks/object.h"

/// A function to look for. `found` stays as it is where there is none.
struct Wanted {
  const char* name;
  void** found;
};

enum FindWhere {
  find_everywhere,  ///< as dlsym(RTLD_DEFAULT), but never a function of the tracer
  find_after_us,    ///< as dlsym(RTLD_NEXT): those of the modules that were there when the tracer began
};

/// At the begin of a tracer that is in the search order.
void find_begin(void);
/// How many modules there were then; 0: it is attached.
int find_modules_at_begin(void);

/// Looks for all of them in one pass.
void find_all(const struct Wanted* wanted, int count, enum FindWhere where);
void* find_one(const char* name, enum FindWhere where);

/// The same in one module: that of the file `library`, whatever its folder; or the one that has `code`.
void* find_in_library(const char* library, const char* name);
void* find_in_module_of(const void* code, const char* name);

/// How many modules but the tracer define a function. The first `room` of them come to `found`.
int find_definitions(const char* name, void** found, int room);

/// The loader's name of the module that has an address; empty for the program, NULL: there is none.
const char* find_module(const void* address);
