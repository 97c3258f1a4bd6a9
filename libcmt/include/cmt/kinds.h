/* The kinds of events, in the one list that C and C++ share. preload/program records them, and event.h makes cmt::Kind
 * of them. Encoder, decoder, text form and tools follow from their traits.
 *
 * To add a kind, give it the next number here, and a line in the tables of format-spec/cmt.md and text.md. A test
 * compares them. The encoder then writes its traits into the table of forms (as for every kind from 27 on), so that
 * older readers skip its events.
 *
 * CMT_KINDS(X) is X(name, number, call, traits) for each kind, by rising number.
 *
 *   name    the name in enumerators, JSON and tables
 *   number  the number on the wire, which never changes. The core stream uses 25, 26 and 33 itself.
 *   call    the call in the text form. Two kinds in a row with the same call differ only in their arguments.
 *
 *   traits  which fields the event uses, and what it does to blocks: a sum of enum cmt_kind_traits
 */
#ifndef CMT_KINDS_H
#define CMT_KINDS_H

/* Properties of a kind. The values are on the wire, in the table of forms. */
enum cmt_kind_traits {
  cmt_nothing = 0,
  cmt_allocates = 1,  /* returns a block or NULL */
  cmt_releases = 2,   /* is given a block or NULL; it ends the block, unless it is a realloc that was refused */
  cmt_names = 4,      /* is given a block or NULL, which lives on. Not together with cmt_releases */
  cmt_sizes = 8,      /* has a size */
  cmt_counts = 16,    /* has a count of elements */
  cmt_aligns = 32,    /* always has an alignment */
  cmt_may_align = 64, /* has an alignment in some forms; of the kinds of pools, a pool */
  cmt_labels = 128    /* has a label */
};

/* Every kind's number is below this limit, in later versions too. */
enum { cmt_kind_limit = 64 };

/* clang-format off */
#define CMT_KINDS(X)                                                                                            \
  X(malloc,                      0, "malloc",             cmt_allocates | cmt_sizes)                            \
  X(free,                        1, "free",               cmt_releases)                                         \
  X(calloc,                      2, "calloc",             cmt_allocates | cmt_counts | cmt_sizes)               \
  X(realloc,                     3, "realloc",            cmt_allocates | cmt_releases | cmt_sizes)             \
  X(reallocarray,                4, "reallocarray",       cmt_allocates | cmt_releases | cmt_counts | cmt_sizes) \
  X(aligned_alloc,               5, "aligned_alloc",      cmt_allocates | cmt_sizes | cmt_aligns)               \
  X(posix_memalign,              6, "posix_memalign",     cmt_allocates | cmt_sizes | cmt_aligns)               \
  X(memalign,                    7, "memalign",           cmt_allocates | cmt_sizes | cmt_aligns)               \
  X(valloc,                      8, "valloc",             cmt_allocates | cmt_sizes)                            \
  X(pvalloc,                     9, "pvalloc",            cmt_allocates | cmt_sizes)                            \
  X(free_sized,                 10, "free_sized",         cmt_releases | cmt_sizes)                             \
  X(free_aligned_sized,         11, "free_aligned_sized", cmt_releases | cmt_sizes | cmt_aligns)                \
  X(operator_new,               12, "operator new",       cmt_allocates | cmt_sizes | cmt_may_align)            \
  X(operator_new_nothrow,       13, "operator new",       cmt_allocates | cmt_sizes | cmt_may_align)            \
  X(operator_new_array,         14, "operator new[]",     cmt_allocates | cmt_sizes | cmt_may_align)            \
  X(operator_new_array_nothrow, 15, "operator new[]",     cmt_allocates | cmt_sizes | cmt_may_align)            \
  X(operator_delete,            16, "operator delete",    cmt_releases | cmt_may_align)                         \
  X(operator_delete_sized,      17, "operator delete",    cmt_releases | cmt_sizes | cmt_may_align)             \
  X(operator_delete_array,      18, "operator delete[]",  cmt_releases | cmt_may_align)                         \
  X(operator_delete_array_sized, 19, "operator delete[]", cmt_releases | cmt_sizes | cmt_may_align)             \
  X(thread_start,               20, "thread_start",       cmt_nothing)                                          \
  X(thread_exit,                21, "thread_exit",        cmt_nothing)                                          \
  X(thread_name,                22, "thread_name",        cmt_labels)                                           \
  X(mark,                       23, "mark",               cmt_labels)                                           \
  X(sample,                     24, "sample",             cmt_sizes)                                            \
  X(unknown_kind,               27, "unknown_kind",       cmt_nothing)                                          \
  X(touch,                      28, "touch",              cmt_names | cmt_sizes | cmt_counts | cmt_aligns)      \
  X(resident,                   29, "resident",           cmt_names | cmt_sizes | cmt_counts | cmt_aligns)      \
  X(malloc_trim,                30, "malloc_trim",        cmt_sizes)                                            \
  X(mallopt,                    31, "mallopt",            cmt_labels)                                           \
  X(mallctl,                    32, "mallctl",            cmt_labels)                                           \
  X(pool_malloc,                34, "pool_malloc",        cmt_sizes | cmt_may_align)                            \
  X(pool_free,                  35, "pool_free",          cmt_may_align)                                        \
  X(sampling_interval,          36, "sampling_interval",  cmt_sizes)                                            \
  X(unsample,                   37, "unsample",           cmt_releases)                                         \
  X(discard,                    38, "discard",            cmt_names | cmt_sizes | cmt_counts)
/* clang-format on */

#endif
