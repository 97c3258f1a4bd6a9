/// The way of a trace through an annotator, batch by batch, on several threads (toolkit/trace/stages.h):
///
///     read    the reader makes events of the input, in order; for a .cmt in two steps
///     model   the annotator makes notes of each event, in order
///
///     lines   the annotator writes the events' lines with these notes into the batch's buffer: many batches at once
///     out     the buffer is written to standard output, in order
///
/// With one thread each batch goes this way before the next one is read. The output is the same.
#pragma once

#include <unistd.h>

#include <vector>

#include "libcmt/trace/files.h"
#include "toolkit/trace/annotated_text.h"
#include "toolkit/trace/stages.h"
#include "toolkit/trace/trace_tool.h"

namespace cmt::trace {

/// A batch, the notes of its events, and their lines.
template <class Note>
struct AnnotatedBatch {
  TraceBatch batch;
  std::vector<Note> notes;
  AnnotatedText text;
};

/// Lets the annotator make its notes of a batch. If an event is an error, the batch ends before it and contains the
/// error, and this function returns false.
template <class Annotator, class Note>
bool note_events(Trace& trace, Annotator& annotator, AnnotatedBatch<Note>& each) {
  each.notes.clear();
  std::size_t noted = 0;
  try {
    trace.visit_batch(
        each.batch, [&](const Event& event, bool is_near) { annotator.fetch(event, is_near); },
        [&](std::size_t i) {
          annotator.note(each.batch.events[i], each.notes);
          noted = i + 1;
        });
  } catch (const FormatError&) {
    each.batch.events.resize(noted);
    each.batch.error = std::current_exception();
  }
  return !each.batch.error;
}

template <class Annotator, class Note>
void write_lines(const Annotator& annotator, AnnotatedBatch<Note>& each) {
  each.text.clear();
  const Note* note = each.notes.data();
  for (std::size_t i = 0; i < each.batch.events.size(); ++i) {
    const Event& event = each.batch.events[i];
    each.text.begin_line(event, each.batch.line(i), each.batch.lines_are_plain);
    annotator.write(each.text, event, note);
    each.text.end_line();
  }
}

/// Writes the trace to standard output with its annotations. An Annotator is made of (complaints, options,
/// settings...). Its type Note is one note of the model about an event. It has
///
///     fetch(event, is_near)       fetches memory for a later note(event)
///     note(event, notes)          appends the notes of an event, none or some; throws FormatError
///
///     write(out, event, note)     writes the annotation of an event, and moves `note` past its notes; const, because
///                                 several threads call it
///     leaks() and clock()         the blocks that live at the end
///
/// Before an error is thrown all lines up to it are written.
template <class Annotator, class... Settings>
void annotate_lines(const Options& options, Settings... settings) {
  Trace trace(options);
  trace.begin_output();
  Output out(STDOUT_FILENO);
  Annotator annotator(trace.complaints(), options, settings...);
  BatchReader& reader = trace.batches();
  std::vector<AnnotatedBatch<typename Annotator::Note>> places(Stages::places_for(options.jobs));
  Stages stages({{true, [&](std::size_t place) { return reader.begin(places[place].batch); }, 0},
                 {true, [&](std::size_t place) { return reader.complete(places[place].batch); }, 0},
                 {true, [&](std::size_t place) { return note_events(trace, annotator, places[place]); }, 1},
                 {false, [&](std::size_t place) { return write_lines(annotator, places[place]), true; }},
                 {true,
                  [&](std::size_t place) {
                    out.write(places[place].text.lines());
                    if (places[place].batch.error) std::rethrow_exception(places[place].batch.error);
                    return true;
                  }}},
                places.size());
  stages.run(options.jobs);
  trace.say_what_is_missing();
  if (options.leaks) {
    AnnotatedText text;
    append_leaks(text, annotator.leaks(), annotator.clock(), [&] {
      out.write(text.lines());
      text.clear();
    });
  }
  trace.complaints().say_count();
}

}  // namespace cmt::trace
