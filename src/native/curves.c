/* The operations are those of the Python engine (families/counts.py), in the same order, so that all
 * values are equal to the last bit. For this the compiler must not fuse a product and a sum. */
#include "curves.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static const double BETA2 = 0.3;

/* Eight partial sums; more than 128 numbers are halved. */
double pairwise_sum(const double *values, int32_t n) {
    if (n < 8) {
        double sum = n ? values[0] : 0.0;
        for (int32_t i = 1; i < n; i++) sum += values[i];
        return sum;
    }
    if (n <= 128) {
        double part[8];
        memcpy(part, values, sizeof part);
        int32_t i = 8;
        for (; i + 8 <= n; i += 8)
            for (int32_t j = 0; j < 8; j++) part[j] += values[i + j];
        double sum = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
        for (; i < n; i++) sum += values[i];
        return sum;
    }
    int32_t half = n / 2 - n / 2 % 8;
    return pairwise_sum(values, half) + pairwise_sum(values + half, n - half);
}

double maximum(const double *values, int32_t n) {
    double largest = values[0];
    for (int32_t i = 1; i < n; i++) {
        if (isnan(values[i])) return values[i];
        if (values[i] > largest) largest = values[i];
    }
    return largest;
}

/* Pixels of one class at or above each threshold, from those of each code. */
static double count_above(const double *counts, int32_t n_codes, const int64_t *cuts, double *above) {
    double below[LEVELS + 3] = {0}; /* at most COLUMNS codes */
    for (int32_t code = 0; code < n_codes; code++) below[code + 1] = below[code] + counts[code];
    for (int32_t i = 0; i < COLUMNS; i++) above[i] = below[n_codes] - below[cuts[i]];
    return below[n_codes];
}

/* The enhanced alignment of one row, over all thresholds. */
static void e_curve(
    const double *tp, const double *fp, double positives, double negatives, double size, double divisor, bool one_class,
    double *out) {
    double n_negatives = isnan(negatives) ? 0.0 : negatives;
    double g_mean = positives / size, g_out = 1 - g_mean, g2 = g_mean * g_mean, g_out2 = g_out * g_out;
    for (int32_t i = 0; i < COLUMNS; i++) {
        double predicted = tp[i] + fp[i], p_mean = predicted / size, p_out = 1 - p_mean;
        double p2 = p_mean * p_mean, p_out2 = p_out * p_out;
        double both = (p_out + g_out) * (p_out + g_out), one = (p_out - g_mean) * (p_out - g_mean);
        double none = (p_mean + g_mean) * (p_mean + g_mean);
        double a = both / (p_out2 + g_out2), b = one / (p_out2 + g2);
        double c = one / (p2 + g_out2), d = none / (p2 + g2);
        double total = tp[i] * (a * a);
        total += fp[i] * (b * b);
        total += (positives - tp[i]) * (c * c);
        total += (negatives - fp[i]) * (d * d);
        total *= 0.25;
        if (one_class) total = tp[i] + (n_negatives - fp[i]);
        out[i] = total / divisor;
    }
}

/* All curves of one row of counts. Without a pixel of a class, what divides by it is NaN. */
static void metric_curves(const double *fp, const double *tp, const double *totals, bool is_image, double *out) {
    double positives = totals[1] == 0 ? NAN : totals[1], negatives = totals[0] == 0 ? NAN : totals[0];
    double size = totals[0] + totals[1], divisor = size;
    if (is_image) divisor = size - 1 > 1 ? size - 1 : 1;
    for (int32_t i = 0; i < COLUMNS; i++) {
        double t = tp[i], f = fp[i], predicted = t + f, recall = t / positives, fpr = f / negatives;
        out[F * COLUMNS + i] = (t + BETA2 * t) / (predicted + BETA2 * positives);
        out[PRECISION * COLUMNS + i] = isnan(positives) ? NAN : t / (predicted > 1 ? predicted : 1);
        out[RECALL * COLUMNS + i] = recall;
        out[IOU * COLUMNS + i] = t / (positives + f);
        out[DICE * COLUMNS + i] = 2 * t / (positives + predicted);
        out[SPECIFICITY * COLUMNS + i] = 1 - fpr;
        out[FPR * COLUMNS + i] = fpr;
        out[BER * COLUMNS + i] = 0.5 * (1 - recall + fpr);
        out[KAPPA * COLUMNS + i] =
            2 * (t * negatives - f * positives) / (predicted * negatives + positives * (size - predicted));
    }
    e_curve(tp, fp, positives, negatives, size, divisor, isnan(positives + negatives), out + E * COLUMNS);
}

/* Exact area under the ROC curve: trapezoids, the last one down to the origin; sums are integers. */
static double area_under_curve(const double *fp, const double *tp, const double *totals) {
    double pairs = 0;
    for (int32_t i = 0; i + 1 < LEVELS; i++) pairs += (fp[i] - fp[i + 1]) * (tp[i] + tp[i + 1]);
    pairs = (pairs + fp[LEVELS - 1] * tp[LEVELS - 1]) / 2;
    return totals[0] == 0 || totals[1] == 0 ? NAN : pairs / (totals[1] * totals[0]);
}

static void frame_values(const double *curves, int32_t first, double auc, double *out) {
    int32_t n = LEVELS - first;
    out[F_MEAN] = pairwise_sum(curves + F * COLUMNS + first, n) / n;
    out[F_MAX] = maximum(curves + F * COLUMNS + first, n);
    out[IOU_BINARY] = curves[IOU * COLUMNS + BINARY];
    out[RECALL_BINARY] = curves[RECALL * COLUMNS + BINARY];
    out[AUC] = auc;
}

void compute_curves(
    const double *counts, int32_t n_frames, int32_t n_codes, const int64_t *cuts, int32_t first, Curves *out) {
    double row_curves[N_METRICS * COLUMNS];
    int32_t n_defined[N_METRICS] = {0};
    memset(out->si, 0, N_METRICS * COLUMNS * sizeof *out->si);
    for (int32_t row = 0; row <= n_frames; row++) {
        double totals[2], above[2 * COLUMNS];
        for (int32_t class = 0; class < 2; class++)
            totals[class] = count_above(
                counts + ((size_t)row * 2 + (size_t)class) * (size_t)n_codes, n_codes, cuts, above + class * COLUMNS);
        double *curves = row == 0 ? out->plain : row_curves;
        metric_curves(above, above + COLUMNS, totals, row == 0, curves);
        double auc = area_under_curve(above, above + COLUMNS, totals);
        frame_values(curves, first, auc, out->frames + (size_t)row * N_FRAME_VALUES);
        for (int32_t metric = 0; row > 0 && metric < N_METRICS; metric++) {
            const double *curve = curves + metric * COLUMNS;
            if (isnan(curve[0])) continue; /* a row is undefined at all thresholds or at none */
            n_defined[metric]++;
            for (int32_t i = 0; i < COLUMNS; i++) out->si[metric * COLUMNS + i] += curve[i];
        }
    }
    for (int32_t metric = 0; metric < N_METRICS; metric++)
        for (int32_t i = 0; i < COLUMNS; i++) out->si[metric * COLUMNS + i] /= n_defined[metric];
}
