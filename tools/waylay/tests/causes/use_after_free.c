// depth 1: free < use
// The owner gives the list back while a reader may still come.
#include <pthread.h>
#include <stdlib.h>
struct node {
    struct node *next;
    int value;
};
static struct node *head;
static void *reader(void *unused) {
    struct node *node = head;
    node = node->next; // @use
    return node && node->value == 3 ? unused : 0;
}
int main(void) {
    pthread_t thread;
    head = malloc(sizeof *head);
    head->next = 0;
    head->value = 3;
    pthread_create(&thread, 0, reader, 0);
    free(head); // @free
    pthread_join(thread, 0);
    return 0;
}
