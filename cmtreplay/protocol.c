/* The worker and its parent both speak of calls by name. */
#include "calls.h"

const char* const call_names[call_count] = {"malloc",        "free",           "calloc",   "realloc", "reallocarray",
                                            "aligned_alloc", "posix_memalign", "memalign", "valloc",  "pvalloc"};
