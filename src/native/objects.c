/* Runs are compared with runs, row by row: no pixel is looked at. */
#include "objects.h"

#include <string.h>

#include "memory.h"

/* How many pixels a component and a true object share; found by hashing the two. */
typedef struct {
    int32_t component, frame;
    int64_t pixels; /* 0: an empty place */
} Shared;

typedef struct {
    Shared *places;
    size_t size, used; /* a power of two; at most half are used */
} Table;

static Shared *find_place(const Table *table, int32_t component, int32_t frame) {
    uint64_t key = ((uint64_t)(uint32_t)component << 32) | (uint32_t)frame;
    key ^= key >> 33;
    key *= UINT64_C(0xff51afd7ed558ccd); /* spreads the bits of the key */
    size_t place = (size_t)(key >> 20) & (table->size - 1);
    for (;; place = (place + 1) & (table->size - 1)) {
        Shared *found = table->places + place;
        if (found->pixels == 0 || (found->component == component && found->frame == frame)) return found;
    }
}

static bool enlarge(Table *table) {
    Table larger = {.size = table->size ? 2 * table->size : 64, .used = table->used};
    larger.places = new_array(larger.size, sizeof(Shared));
    if (!larger.places) return false;
    for (size_t i = 0; i < table->size; i++) {
        const Shared *old = table->places + i;
        if (old->pixels) *find_place(&larger, old->component, old->frame) = *old;
    }
    free(table->places);
    *table = larger;
    return true;
}

static bool add_shared(Table *table, int32_t component, int32_t frame, int64_t pixels) {
    if (2 * table->used >= table->size && !enlarge(table)) return false;
    Shared *place = find_place(table, component, frame);
    if (place->pixels == 0) {
        *place = (Shared){component, frame, 0};
        table->used++;
    }
    place->pixels += pixels;
    return true;
}

static inline int32_t larger_of(int32_t a, int32_t b) { return a > b ? a : b; }
static inline int32_t smaller_of(int32_t a, int32_t b) { return a < b ? a : b; }

/* The pixels of columns [left, right) that runs hold; the runs of the row begin with `run`. */
static int64_t held_pixels(const Runs *truth, int32_t run, int32_t end, int32_t left, int32_t right) {
    int64_t held = 0;
    for (; run < end && truth->runs[run].left < right; run++) {
        int32_t from = larger_of(truth->runs[run].left, left), to = smaller_of(truth->runs[run].right, right);
        if (to > from) held += to - from;
    }
    return held;
}

/* The pixels of a run that are in no frame and not salient. */
static int64_t spilled_pixels(
    const Run *run, const Runs *truth, int32_t first, int32_t end, const Background *background, int32_t band) {
    int64_t spilled = 0;
    for (int32_t i = background->start[band]; i < background->start[band + 1]; i++) {
        int32_t left = larger_of(background->spans[2 * i], run->left);
        int32_t right = smaller_of(background->spans[2 * i + 1], run->right);
        if (left < right) spilled += right - left - held_pixels(truth, first, end, left, right);
    }
    return spilled;
}

/* Add what the runs of one row share. */
static bool compare_row(
    int32_t y, const Runs *predicted, const Runs *truth, const Background *background, int32_t band, Table *table,
    Overlaps *out) {
    int32_t first = truth->start[y], end = truth->start[y + 1];
    for (int32_t i = predicted->start[y]; i < predicted->start[y + 1]; i++) {
        const Run *run = predicted->runs + i;
        int32_t index = predicted->components[run->owner].index;
        while (first < end && truth->runs[first].right <= run->left) first++;
        int64_t salient = 0;
        for (int32_t j = first; j < end && truth->runs[j].left < run->right; j++) {
            const Run *other = truth->runs + j;
            int64_t pixels = smaller_of(run->right, other->right) - larger_of(run->left, other->left);
            int32_t frame = truth->components[other->owner].index;
            salient += pixels;
            if (frame >= 0 && !add_shared(table, run->owner, frame, pixels)) return false;
        }
        if (index >= 0) {
            out->salient[index] += salient;
            if (salient < run->right - run->left)
                out->spilled[index] += spilled_pixels(run, truth, first, end, background, band);
        }
    }
    return true;
}

/* Find matches and holders. `missed` comes with the areas of the true objects. */
static void match_objects(const Table *table, const Runs *predicted, const int64_t *areas, Overlaps *out) {
    for (size_t i = 0; i < table->size; i++) {
        const Shared *pair = table->places + i;
        if (pair->pixels == 0) continue;
        out->missed[pair->frame] -= pair->pixels;
        int32_t index = predicted->components[pair->component].index;
        if (index < 0) continue;
        if (2 * pair->pixels > areas[pair->frame]) out->holder[pair->frame] = index;
        bool more = pair->pixels > out->shared[index];
        if (more || (pair->pixels == out->shared[index] && pair->frame < out->match[index])) {
            out->match[index] = pair->frame;
            out->shared[index] = pair->pixels;
        }
    }
    for (int32_t i = 0; i < predicted->n_components; i++) {
        int32_t index = predicted->components[i].index;
        if (index < 0) continue;
        int64_t shared = out->shared[index], area = out->match[index] < 0 ? 0 : areas[out->match[index]];
        out->iou[index] = (double)shared / (double)(predicted->components[i].area + area - shared);
    }
}

bool compare_objects(const Runs *predicted, const Runs *truth, const Background *background, Overlaps *out) {
    Table table = {0};
    int64_t *areas = new_array((size_t)truth->n_components, sizeof *areas);
    bool done = areas && enlarge(&table);
    for (int32_t i = 0; done && i < truth->n_components; i++) {
        const Component *component = truth->components + i;
        if (component->index < 0) continue;
        areas[component->index] = out->missed[component->index] = component->area;
        out->holder[component->index] = -1;
    }
    for (int32_t i = 0; done && i < predicted->n_components; i++)
        if (predicted->components[i].index >= 0) out->match[predicted->components[i].index] = -1;
    for (int32_t y = 0, band = 0; done && y < truth->height; y++) {
        while (background->top[band + 1] <= y) band++;
        done = compare_row(y, predicted, truth, background, band, &table, out);
    }
    if (done) match_objects(&table, predicted, areas, out);
    free(areas);
    free(table.places);
    return done;
}
