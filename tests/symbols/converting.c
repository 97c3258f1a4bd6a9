// Converts texts by iconv(), whose modules allocate as they are loaded: for the test of recorded stacks.

#include <iconv.h>
#include <stdio.h>

// iconv loads and unloads modules, of which three allocate once each time: 10 times in all.
int main(void) {
  static const char* const sets[] = {"UTF-16", "UTF-32", "UNICODE", "KOI8-R", "CP1251", "EUC-JP"};
  for (int i = 0; i < 60; i++) {
    iconv_t conversion = iconv_open(sets[i % 6], "UTF-8");
    if (conversion == (iconv_t)-1) return 77;
    char text[] = "text", out[64], *from = text, *to = out;
    size_t left = sizeof text, room = sizeof out;
    iconv(conversion, &from, &left, &to, &room);
    iconv_close(conversion);
  }
  return 0;
}
