// clean
#include "wild.h"
#include <netinet/in.h>
#include <sys/socket.h>
static int listener;
static struct sockaddr_in address;
static void *serves(void *x) {
    char word[9];
    int peer = accept(listener, 0, 0);
    ssize_t n = read(peer, word, sizeof word);
    assert(write(peer, word, n) == n);
    close(peer);
    return x;
}
static void *asks(void *x) {
    char word[9];
    int peer = socket(AF_INET, SOCK_STREAM, 0);
    assert(connect(peer, (struct sockaddr *)&address, sizeof address) == 0);
    assert(write(peer, "hello", 5) == 5);
    assert(read(peer, word, sizeof word) == 5);
    close(peer);
    return x;
}
int main(void) {
    socklen_t len = sizeof address;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert(bind(listener, (struct sockaddr *)&address, sizeof address) == 0);
    assert(listen(listener, 5) == 0);
    getsockname(listener, (struct sockaddr *)&address, &len);
    run_two(serves, asks);
    return 0;
}
