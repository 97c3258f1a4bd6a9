#include "lifetimes/annotate.h"

void LifetimeAnnotator::add(const cmt::Event& event, std::string_view line) {
  ++event_;
  if (event.ends_block()) {
    annotate_end(event.old_tag, line);
  } else {
    out_.bare(line);
  }
  if (event.makes_block()) begin(event);
}

void LifetimeAnnotator::annotate_end(cmt::Tag tag, std::string_view line) {
  out_.annotate(line);
  if (const auto block = live_.erase(tag)) {
    out_.decimal(block->size);
    out_.text(" bytes, allocated ");
    out_.decimal(event_ - block->born);
    out_.text(" lines ago");
  } else {
    out_.text("unknown block");
    if (first_tag_ != 0 && tag >= first_tag_) complain(tag, "is ended and not alive");
  }
  out_.close();
}

void LifetimeAnnotator::begin(const cmt::Event& event) {
  if (first_tag_ == 0) first_tag_ = event.tag;
  const Block block{event.tag, event.bytes(), event_};
  if (live_.insert(block)) return;
  complain(event.tag, "is made and already alive");
  live_.erase(event.tag);
  live_.insert(block);
}

void LifetimeAnnotator::complain(cmt::Tag tag, std::string_view what) {
  complaints_.add(name_ + ": event " + std::to_string(event_),
                  "block <" + std::to_string(tag) + "> " + std::string(what));
}
