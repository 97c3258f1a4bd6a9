// Answers requests from a catalogue, and forgets some of them.
#include <cstdio>

struct Item {
  char description[200];
};
struct Catalogue {
  Item* items[3000];
};
struct Request {
  int item;
  char* body;
};

Catalogue* load_catalogue() {
  auto* const catalogue = new Catalogue;
  for (Item*& item : catalogue->items) item = new Item{"an item"};
  return catalogue;
}

Request* parse_request(int number) { return new Request{number % 3030, new char[256]}; }

void release(Request* request) {
  delete[] request->body;
  delete request;
}

bool answer(const Catalogue&, int number) {
  Request* const request = parse_request(number);
  if (request->item >= 3000) {  // there is no such item
#ifdef FIXED
    release(request);
#endif
    return false;
  }
  release(request);
  return true;
}

int main() {
  const Catalogue* const catalogue = load_catalogue();
  int answered = 0;
  for (int number = 0; number < 30300; ++number) answered += answer(*catalogue, number);
  std::printf("%d of 30300 requests answered\n", answered);
}
