/* The functions of `steps.rs` for Windows: there the standard library that this crate is built with may not be one that a
 * compiler finds by itself. */
#include <stdint.h>

uint64_t zoo_read(const uint64_t *word) { return __atomic_load_n(word, __ATOMIC_SEQ_CST); }
void zoo_write(uint64_t *word, uint64_t value) { __atomic_store_n(word, value, __ATOMIC_SEQ_CST); }
uint64_t zoo_add(uint64_t *word, uint64_t value) { return __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST); }
