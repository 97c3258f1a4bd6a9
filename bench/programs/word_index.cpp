// A program with threads for bench/fidelity. Four threads index words: each makes documents for its neighbour, indexes
// those that it receives in a map of its own, and drops old ones. So threads constantly free blocks of other threads.
#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int thread_count = 4;
constexpr int documents = 6000;
constexpr std::size_t kept_documents = 400;

using Document = std::vector<std::string>;

class Queue {
 public:
  void put(std::unique_ptr<Document> document) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(document));
    filled_.notify_one();
  }
  std::unique_ptr<Document> take() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [this] { return !waiting_.empty(); });
    auto document = std::move(waiting_.front());
    waiting_.pop_front();
    return document;
  }

 private:
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<std::unique_ptr<Document>> waiting_;
};

std::unique_ptr<Document> make_document(std::mt19937& random) {
  auto document = std::make_unique<Document>();
  const std::size_t words = 20 + random() % 200;
  for (std::size_t i = 0; i < words; ++i)
    document->push_back(std::string(4 + random() % 60, static_cast<char>('a' + random() % 26)));
  return document;
}

void index(std::array<Queue, thread_count>& queues, int self) {
  std::mt19937 random(static_cast<std::uint32_t>(self));
  std::map<std::string, std::uint64_t> counts;
  std::deque<std::unique_ptr<Document>> kept;
  for (int i = 0; i < documents; ++i) {
    queues[static_cast<std::size_t>((self + 1) % thread_count)].put(make_document(random));
    kept.push_back(queues[static_cast<std::size_t>(self)].take());
    for (const std::string& word : *kept.back()) ++counts[word];
    if (kept.size() > kept_documents) kept.pop_front();
  }
}

}  // namespace

int main() {
  std::array<Queue, thread_count> queues;
  std::vector<std::thread> threads;
  for (int i = 0; i < thread_count; ++i) threads.emplace_back(index, std::ref(queues), i);
  for (std::thread& thread : threads) thread.join();
}
