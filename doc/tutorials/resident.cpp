// resident pinned|arenas: leaves much free memory resident, and waits.
#include <unistd.h>

#include <barrier>
#include <cstdio>
#include <string_view>
#include <thread>
#include <vector>

// Documents of 2,000 bytes, each with an entry of 40 bytes that stays.
std::vector<char*> index_entries;
void pinned() {
  std::vector<char*> documents;
  for (int i = 0; i < 30000; i++) {
    documents.push_back(new char[2000]());
    index_entries.push_back(new char[40]());
  }
  for (char* document : documents) delete[] document;
}

// Eight workers, each with buffers that grow. One buffer was of 5 MB.
void worker(std::barrier<>& ready) {
  std::vector<char*> buffers;
  for (int i = 0; i < 20; i++) buffers.push_back(new char[1'000'000 + i * 50'000]());
  delete[] new char[5'000'000]();
  for (char* buffer : buffers) delete[] buffer;
  for (int i = 0; i < 20; i++) buffers[static_cast<std::size_t>(i)] = new char[400'000 + i * 100'000]();
  for (int i = 0; i < 19; i++) delete[] buffers[static_cast<std::size_t>(i)];
  ready.arrive_and_wait();
  pause();
}
void arenas() {
  static std::barrier<> ready(9);
  for (int i = 0; i < 8; i++) std::thread(worker, std::ref(ready)).detach();
  ready.arrive_and_wait();
}

int main(int count, char** words) {
  const std::string_view mode = count > 1 ? words[1] : "";
  if (mode == "pinned") pinned();
  if (mode == "arenas") arenas();
  std::puts("ready");
  std::fflush(stdout);
  pause();
}
