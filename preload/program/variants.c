// Goes through the table of the interposed functions, which the linker has made of their entries.
#include "preload/program/variants.h"

extern const struct VariantEntry __start_cmt_variants[] HIDDEN;
extern const struct VariantEntry __stop_cmt_variants[] HIDDEN;

void variants_choose(enum Variant variant) {
  must(variant < variants_count);
  for (const struct VariantEntry* entry = __start_cmt_variants; entry != __stop_cmt_variants; entry++)
    __atomic_store_n(entry->chosen, entry->variants[variant], __ATOMIC_RELAXED);
}
