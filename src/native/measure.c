#include "measure.h"

#include <string.h>

#include "memory.h"

/* The darkest and the brightest grey value that occur. */
static void find_ends(const double *counts, int32_t *low, int32_t *high) {
    *low = 0;
    *high = 255;
    while (*low < 255 && counts[*low] + counts[256 + *low] == 0) ++*low;
    while (*high > 0 && counts[*high] + counts[256 + *high] == 0) --*high;
}

static bool find_frames(const Plane *plane, const Settings *settings, Measurement *out) {
    Threshold salient = {plane->height, plane->width, plane->gt, 1};
    if (!find_components(&salient, settings->connectivity, &out->truth)) return false;
    size_t n = (size_t)out->truth.n_components;
    out->kept = new_array(n, sizeof *out->kept);
    if (!out->kept) return false;
    out->n_frames = keep_components(&out->truth, settings->least, true, out->kept);
    size_t rows = (size_t)out->n_frames + 2;
    Box *frames = new_array(rows, sizeof *frames);
    out->counts = new_array(rows * 2 * (size_t)plane->n_codes, sizeof *out->counts);
    bool done = frames && out->counts;
    for (int32_t i = 0; done && i < out->n_frames; i++) {
        const Component *component = out->truth.components + out->kept[i];
        frames[i] = (Box){component->y0, component->x0, component->y1, component->x1};
    }
    done = done && count_frames(plane, frames, out->n_frames, out->counts, &out->background);
    if (done) find_ends(out->counts, &out->low, &out->high);
    free(frames);
    return done;
}

/* The least grey value with p > 0.5, by the operations of the Python engine. */
static int32_t binary_grey(int32_t low, int32_t high, bool minmax) {
    if (!minmax || low == high) return 128;
    int32_t grey = (low + high) / 2; /* p < 0.5 one below it, so that only few values are tried */
    while ((grey / 255.0 - low / 255.0) / (high / 255.0 - low / 255.0) <= 0.5) grey++;
    return grey;
}

/* Count the codes of each predicted object. */
static void count_codes(const Plane *plane, Measurement *out) {
    const Runs *predicted = &out->predicted;
    for (int32_t y = 0; y < predicted->height; y++) {
        size_t start = (size_t)y * (size_t)predicted->width;
        for (int32_t i = predicted->start[y]; i < predicted->start[y + 1]; i++) {
            const Run *run = predicted->runs + i;
            int32_t index = predicted->components[run->owner].index;
            if (index < 0) continue;
            double *histogram = out->histograms + (size_t)index * (size_t)plane->n_codes;
            for (size_t x = start + (size_t)run->left; x < start + (size_t)run->right;) {
                /* runs of equal pixels: an addition for each of them, not for each pixel */
                size_t from = x;
                uint8_t code = plane->codes8[x];
                while (++x < start + (size_t)run->right && plane->codes8[x] == code) continue;
                histogram[code] += (double)(x - from);
            }
        }
    }
}

static bool find_objects(const Plane *plane, const Settings *settings, Measurement *out) {
    int32_t least = binary_grey(out->low, out->high, settings->minmax);
    Threshold above = {plane->height, plane->width, plane->codes8, least};
    if (!find_components(&above, settings->connectivity, &out->predicted)) return false;
    size_t n = (size_t)out->predicted.n_components, n_frames = (size_t)out->n_frames;
    out->kept_predicted = new_array(n, sizeof *out->kept_predicted);
    if (!out->kept_predicted) return false;
    out->n_predicted = keep_components(&out->predicted, settings->least, false, out->kept_predicted);
    n = (size_t)out->n_predicted;
    int64_t *integers = out->integers = new_array(4 * n + 2 * n_frames, sizeof *integers);
    out->histograms = new_array(settings->histograms ? n * (size_t)plane->n_codes : 0, sizeof *out->histograms);
    double *iou = out->iou = new_array(n, sizeof *iou);
    if (!integers || !iou || !out->histograms) return false;
    out->overlaps = (Overlaps){
        .iou = iou,
        .salient = integers,
        .spilled = integers + n,
        .match = integers + 2 * n,
        .shared = integers + 3 * n,
        .holder = integers + 4 * n,
        .missed = integers + 4 * n + n_frames,
    };
    if (settings->histograms) count_codes(plane, out);
    return compare_objects(&out->predicted, &out->truth, &out->background, &out->overlaps);
}

bool measure_image(const Plane *plane, const Settings *settings, Measurement *out) {
    memset(out, 0, sizeof *out);
    return find_frames(plane, settings, out) && (!settings->objects || find_objects(plane, settings, out));
}

void free_measurement(Measurement *measurement) {
    free_runs(&measurement->truth);
    free_runs(&measurement->predicted);
    free_background(&measurement->background);
    free(measurement->kept);
    free(measurement->kept_predicted);
    free(measurement->counts);
    free(measurement->histograms);
    free(measurement->integers);
    free(measurement->iou);
}
