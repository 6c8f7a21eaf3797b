/* Memory that may be refused: every allocation is checked, every size is computed without overflow. */
#ifndef SISOD_MEMORY_H
#define SISOD_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* An array of `count` zeroed items, or NULL; never a pointer of size zero. */
static inline void *new_array(size_t count, size_t item) {
    return calloc(count ? count : 1, item);
}

/* The same with whatever was in the memory before. */
static inline void *new_block(size_t count, size_t item) {
    if (count > SIZE_MAX / item) return NULL;
    return malloc(count ? count * item : 1);
}

/* Make room for `needed` items in an array that grows by half; false without memory. */
static inline bool reserve(void **array, size_t *capacity, size_t needed, size_t item) {
    if (needed <= *capacity) return true;
    size_t larger = *capacity + *capacity / 2 + 64;
    if (larger < needed) larger = needed;
    if (larger > SIZE_MAX / item) return false;
    void *moved = realloc(*array, larger * item);
    if (!moved) return false;
    *array = moved;
    *capacity = larger;
    return true;
}

#endif
