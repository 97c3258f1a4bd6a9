// A service that answers requests and keeps a session for each new user for ever.
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

struct Session {
  std::string user;
  std::vector<char> state;
};
std::map<int, Session> sessions;

__attribute__((noinline)) void open_session(int user) {
  sessions[user] = {"user number " + std::to_string(user) + " of the service", std::vector<char>(2000)};
}

__attribute__((noinline)) std::string answer(int request) {
  std::string page;
  for (int line = 0; line < 20; ++line) page += "line " + std::to_string(line * request) + " of the answer\n";
  return page;
}

int main() {
  std::size_t sent = 0;
  for (int request = 0;; ++request) {
    sent += answer(request).size();
    if (request % 10 == 0) open_session(request);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (sent == 1) return 1;
  }
}
