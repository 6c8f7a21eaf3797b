/* The operations are those of the Python engine (batch.py, size_invariant.py, families/objects.py), in the
 * same order, so that all values are equal to the last bit. */
#include "values.h"

#include <math.h>

#include "memory.h"

static double ratio(double part, double whole) { return part / (whole == 0 ? NAN : whole); }

static double harmonic_mean(double first, double second) {
    double total = first + second;
    return 2 * first * second / (total == 0 ? 1.0 : total);
}

/* The mean over the frames where a value is defined; column by column of their values. */
static double mean_of_frames(const double *values_of_frames, int32_t n_frames, int column) {
    double sum = 0, n = 0;
    for (int32_t frame = 1; frame <= n_frames; frame++) {
        double value = values_of_frames[(size_t)frame * N_FRAME_VALUES + (size_t)column];
        if (isnan(value)) continue;
        sum += value;
        n++;
    }
    return sum / n;
}

/* The four forms of every curve. */
static void compute_forms(const double *curves, int32_t first, double *out) {
    int32_t n = LEVELS - first;
    for (int32_t metric = 0; metric < N_CURVES; metric++) {
        const double *curve = curves + metric * COLUMNS;
        out[MEAN * N_CURVES + metric] = pairwise_sum(curve + first, n) / n;
        out[MAX * N_CURVES + metric] = maximum(curve + first, n);
        out[AT_ADAPTIVE * N_CURVES + metric] = curve[ADAPTIVE];
        out[AT_BINARY * N_CURVES + metric] = curve[BINARY];
    }
}

/* Recall, precision and F1 of objects. */
static void detection_values(double found, double objects, double precise, double predicted, double out[3]) {
    double recall = ratio(found, objects), precision = ratio(precise, predicted);
    out[0] = recall;
    out[1] = precision;
    out[2] = harmonic_mean(precision, recall);
}

static void object_values(
    const ImageCounts *in, double size, const double *si, const double *values_of_frames, double *matched,
    double *out) {
    double found = 0, small = 0, found_small = 0;
    for (int32_t frame = 0; frame < in->n_frames; frame++) {
        bool is_found = values_of_frames[(size_t)(frame + 1) * N_FRAME_VALUES + RECALL_BINARY] >= 0.5;
        bool is_small = (double)in->areas[frame] / size < 0.01;
        found += is_found;
        small += is_small;
        found_small += is_found && is_small;
    }
    double precise = 0, false_ones = 0, false_pixels = 0, predicted_small = 0, precise_small = 0;
    int32_t n_matched = 0;
    for (int64_t i = 0; i < in->n_predicted; i++) {
        bool is_precise = 2 * in->salient[i] >= in->predicted_areas[i], is_false = in->salient[i] == 0;
        bool is_small = (double)in->predicted_areas[i] / size < 0.01;
        precise += is_precise;
        false_ones += is_false;
        false_pixels += is_false ? (double)in->predicted_areas[i] : 0;
        predicted_small += is_small;
        precise_small += is_precise && is_small;
        if (in->iou[i] > 0.5) matched[n_matched++] = in->iou[i];
    }
    double n = in->n_frames, predicted = (double)in->n_predicted, iou = pairwise_sum(matched, n_matched);
    double share = ratio(n, n + false_ones), middle = (predicted + n) / 2;
    const int balanced[] = {IOU, DICE, F};
    for (int i = 0; i < 3; i++) out[BSI_IOU + i] = n == 0 ? share : si[balanced[i] * COLUMNS + BINARY] * share;
    out[N_PREDICTED] = predicted;
    out[N_FALSE] = out[FALSE_OBJECTS] = false_ones;
    out[N_FOUND] = found;
    detection_values(found, n, precise, predicted, out + OBJECT_RECALL);
    detection_values(found_small, small, precise_small, predicted_small, out + OBJECT_RECALL_SMALL);
    out[FALSE_AREA] = ratio(false_pixels, size);
    out[PQ] = ratio(iou, middle);
    out[SQ] = ratio(iou, n_matched);
    out[RQ] = ratio(n_matched, middle);
}

size_t result_size(int32_t n_frames) {
    return N_VALUES + 2 * N_CURVES * COLUMNS + ((size_t)n_frames + 1) * N_FRAME_VALUES;
}

bool compute_values(const ImageCounts *in, double *out) {
    size_t rows = (size_t)in->n_frames + 2;
    double *right = new_block(rows * COLUMNS + (size_t)in->n_predicted, sizeof *right);
    if (!right) return false;
    Curves curves = {.plain = out + N_VALUES, .right = right};
    curves.si = curves.plain + N_CURVES * COLUMNS;
    curves.frames = curves.si + N_CURVES * COLUMNS;
    compute_curves(in, &curves);
    compute_forms(curves.plain, 0, out);
    compute_forms(curves.si, in->n_frames ? in->first : 0, out + N_FORMS * N_CURVES);
    double *scalars = out + 2 * N_FORMS * N_CURVES, *matched = right + rows * COLUMNS;
    scalars[MAE] = in->absolute[0] / curves.size;
    separable(in, in->absolute, curves.size, 1, scalars + SI_MAE);
    scalars[MSE] = in->squared[0] / curves.size;
    separable(in, in->squared, curves.size, 1, scalars + SI_MSE);
    scalars[PLAIN_AUC] = curves.frames[AUC];
    scalars[SI_AUC] = mean_of_frames(curves.frames, in->n_frames, AUC);
    scalars[SI_F_MAX_FRAME] = mean_of_frames(curves.frames, in->n_frames, F_MAX);
    object_values(in, curves.size, curves.si, curves.frames, matched, scalars + N_SCALARS);
    free(right);
    return true;
}
