/* A library that is loaded while the program runs. */
static int count;

int work(void)
{
    for (int i = 0; i < 100; i++)
        __atomic_fetch_add(&count, 1, __ATOMIC_SEQ_CST);
    return count;
}
