/// The variants of the interposed functions (interpose/interpose.h). Each function jumps to the variant that was chosen
/// last. The first call of all starts the tracer, and goes on in the variant that the settings ask for. So what a
/// process records costs its calls no test, and a variant returns to the program itself.
#pragma once

#include "preload/program/kernel.h"

/// Any function: its true type is that of the interposed function.
typedef void AnyFunction(void);

enum Variant {
  variant_framed,   ///< with the call's frame, for stacks
  variant_plain,    ///< without
  variant_sampled,  ///< only samples are recorded (sampling/sampler.h)
  variants_count,
};

/// One interposed function. All entries are in a section of their own.
struct VariantEntry {
  AnyFunction** chosen;
  AnyFunction* variants[variants_count];
};

/// Lets all interposed functions jump to this variant from here on. Calls in other threads go on as they have begun.
void variants_choose(enum Variant variant) HIDDEN;
