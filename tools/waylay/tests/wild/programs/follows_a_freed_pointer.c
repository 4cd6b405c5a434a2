// finds: crash SIGSEGV
#include "wild.h"
struct node {
    struct node *next;
    int value;
};
static struct node *head;
static void *reads(void *x) {
    struct node *mine = head;
    usleep(1);
    if (mine) mine->next->value++;
    return x;
}
static void *frees(void *x) {
    struct node *mine = head;
    head = 0;
    free(mine->next);
    free(mine);
    return x;
}
int main(void) {
    head = calloc(1, sizeof *head);
    head->next = calloc(1, sizeof *head);
    run_two(reads, frees);
    return 0;
}
