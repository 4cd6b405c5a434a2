// A program that ends and leaves another behind, which waits for a minute: to test what runs the tests.
#include <stdio.h>
#include <windows.h>

int main(int count, char **arguments) {
  if (count > 1) {
    Sleep(60000);
    return 0;
  }
  char line[MAX_PATH + 16];
  snprintf(line, sizeof line, "\"%s\" wait", arguments[0]);
  STARTUPINFOA start = {.cb = sizeof start};
  PROCESS_INFORMATION process;
  if (!CreateProcessA(NULL, line, NULL, NULL, TRUE, 0, NULL, NULL, &start, &process)) return 2;
  puts("the first one ends");
  return 0;
}
