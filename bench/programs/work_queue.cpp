// A server without a network: eight workers, each with a queue of requests. A worker looks each request up in a cache
// of recent answers, which all share. If the answer is not there, the worker makes it of many small strings. It hands
// the answer to the next worker, which frees it. So most blocks are freed by another thread than made them.
//
// It prints the largest number of requests at once. The scheduler decides how many these are, and
// the peak of memory depends on it.
//
//     g++ -O2 -std=c++20 -pthread -o work_queue work_queue.cpp && ./work_queue [REQUESTS]
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

constexpr int workers = 8;
constexpr std::size_t cached_max = 6000, queued_max = 200;

std::uint32_t next_random(std::uint32_t& seed) { return (seed = seed * 1664525 + 1013904223) >> 8; }

struct Answer {
  std::vector<std::string> lines;
};

struct Request {
  int hops = 0;
  std::uint32_t key = 0;
  std::shared_ptr<const Answer> answer;
  std::vector<std::unique_ptr<std::string>> notes;
};

class Queue {
 public:
  void push(std::unique_ptr<Request> request) {
    const std::lock_guard lock(mutex_);
    requests_.push_back(std::move(request));
    changed_.notify_one();
  }
  /// Null: there will be none.
  std::unique_ptr<Request> pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !requests_.empty() || closed_; });
    if (requests_.empty()) return nullptr;
    auto request = std::move(requests_.front());
    requests_.pop_front();
    return request;
  }
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return requests_.size();
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Request>> requests_;
  bool closed_ = false;
};

class Cache {
 public:
  std::shared_ptr<const Answer> find(std::uint32_t key) {
    const std::lock_guard lock(mutex_);
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return nullptr;
    by_use_.splice(by_use_.begin(), by_use_, found->second);
    return found->second->second;
  }
  void insert(std::uint32_t key, std::shared_ptr<const Answer> answer) {
    const std::lock_guard lock(mutex_);
    if (by_key_.contains(key)) return;
    by_use_.emplace_front(key, std::move(answer));
    by_key_[key] = by_use_.begin();
    if (by_use_.size() <= cached_max) return;
    by_key_.erase(by_use_.back().first);
    by_use_.pop_back();
  }

 private:
  std::mutex mutex_;
  std::list<std::pair<std::uint32_t, std::shared_ptr<const Answer>>> by_use_;
  std::unordered_map<std::uint32_t, decltype(by_use_)::iterator> by_key_;
};

std::array<Queue, workers> queues;
std::atomic<int> queued = 0, queued_most = 0;

void count_request(int change) {
  const int now = queued += change;
  for (int most = queued_most; now > most && !queued_most.compare_exchange_weak(most, now);) continue;
}

Cache cache;

std::shared_ptr<const Answer> make_answer(std::uint32_t key) {
  auto answer = std::make_shared<Answer>();
  std::uint32_t seed = key;
  const std::uint32_t lines = 20 + next_random(seed) % 60;
  for (std::uint32_t i = 0; i < lines; ++i) {
    std::string line = "line " + std::to_string(i) + ": ";
    line.append(next_random(seed) % 200, 'x');
    answer->lines.push_back(std::move(line));
  }
  return answer;
}

void work(int number) {
  std::uint32_t seed = static_cast<std::uint32_t>(number);
  while (auto request = queues[static_cast<std::size_t>(number)].pop()) {
    request->answer = cache.find(request->key);
    if (!request->answer) {
      request->answer = make_answer(request->key);
      cache.insert(request->key, request->answer);
    }
    for (int i = 0; i < 8; ++i)
      request->notes.push_back(std::make_unique<std::string>(20 + next_random(seed) % 300, 'n'));
    if (++request->hops == 3) {
      count_request(-1);
      continue;
    }
    request->key = next_random(seed) % 20000;
    queues[static_cast<std::size_t>((number + 1) % workers)].push(std::move(request));
  }
}

}  // namespace

int main(int count, char** arguments) {
  const int requests = count > 1 ? std::atoi(arguments[1]) : 60000;
  std::vector<std::thread> threads;
  for (int i = 0; i < workers; ++i) threads.emplace_back(work, i);
  std::uint32_t seed = 7;
  for (int i = 0; i < requests; ++i) {
    auto request = std::make_unique<Request>();
    request->key = next_random(seed) % 20000;
    Queue& queue = queues[static_cast<std::size_t>(i % workers)];
    while (queue.size() > queued_max) std::this_thread::yield();
    count_request(1);
    queue.push(std::move(request));
  }
  for (Queue& queue : queues) {
    while (queue.size() != 0) std::this_thread::yield();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // so that no request is on its way between two queues
  for (Queue& queue : queues) queue.close();
  for (std::thread& thread : threads) thread.join();
  std::printf("%d requests, at most %d at once\n", requests, queued_most.load());
}
