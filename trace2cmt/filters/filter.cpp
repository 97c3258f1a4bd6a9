#include "filter.h"

#include <algorithm>

namespace trace2cmt {

Filters::Filters(std::vector<std::unique_ptr<Filter>> filters, Emit last) : filters_(std::move(filters)) {
  for (std::size_t i = 0; i < filters_.size(); ++i) {
    emits_.emplace_back([this, i](const cmt::Event& event) { filters_[i]->add(event, emits_[i + 1]); });
  }
  emits_.push_back(std::move(last));
}

void Filters::change(cmt::Header& header) {
  for (const auto& filter : filters_) filter->change(header);
}

void Filters::finish() {
  for (std::size_t i = 0; i < filters_.size(); ++i) filters_[i]->finish(emits_[i + 1]);
}

bool Filters::done() const {
  return std::any_of(filters_.begin(), filters_.end(), [](const auto& filter) { return filter->done(); });
}

}  // namespace trace2cmt
