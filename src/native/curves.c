/* The operations are those of the Python engine (families/counts.py), in the same order, so that all
 * values are equal to the last bit. For this the compiler must not fuse a product and a sum.
 *
 * A frame has fewer grey values than there are thresholds. A curve is computed where the counts differ,
 * in loops without branches that the compiler can turn into vector instructions, and spread afterwards. */
#include "curves.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static const double BETA2 = 0.3;

/* Pixels of a row at or above each threshold, not salient and salient; equal neighbours are one place. */
typedef struct {
    int32_t n; /* places; those of BINARY and ADAPTIVE are the last two */
    int32_t place[COLUMNS];
    double fp[COLUMNS], tp[COLUMNS];
    double negatives, positives;
} Above;

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
    double part[4] = {values[0], values[0], values[0], values[0]}; /* no comparison waits for the one before */
    int32_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int32_t j = 0; j < 4; j++) part[j] = values[i + j] > part[j] ? values[i + j] : part[j];
    for (; i < n; i++) part[0] = values[i] > part[0] ? values[i] : part[0];
    for (int32_t j = 1; j < 4; j++) part[0] = part[j] > part[0] ? part[j] : part[0];
    return part[0];
}

static void count_above(const double *counts, int32_t n_codes, const int64_t *cuts, Above *out) {
    double below[2][LEVELS + 3]; /* at most COLUMNS codes */
    below[0][0] = below[1][0] = 0;
    for (int32_t code = 0; code < n_codes; code++) {
        below[0][code + 1] = below[0][code] + counts[code];
        below[1][code + 1] = below[1][code] + counts[n_codes + code];
    }
    out->negatives = below[0][n_codes];
    out->positives = below[1][n_codes];
    out->n = 0;
    for (int32_t i = 0; i < COLUMNS; i++) {
        double fp = out->negatives - below[0][cuts[i]], tp = out->positives - below[1][cuts[i]];
        bool differs = i == 0 || i >= LEVELS || fp != out->fp[out->n - 1] || tp != out->tp[out->n - 1];
        out->n += differs;
        out->fp[out->n - 1] = fp;
        out->tp[out->n - 1] = tp;
        out->place[i] = out->n - 1;
    }
}

/* The enhanced alignment; of a row with one class only, the share of pixels that are right. */
static void e_values(const Above *row, double divisor, double *restrict out) {
    double positives = row->positives, negatives = row->negatives, size = positives + negatives;
    double g_mean = positives / size, g_out = 1 - g_mean, g2 = g_mean * g_mean, g_out2 = g_out * g_out;
    if (positives == 0 || negatives == 0) {
        for (int32_t i = 0; i < row->n; i++) out[i] = (row->tp[i] + (negatives - row->fp[i])) / divisor;
        return;
    }
    for (int32_t i = 0; i < row->n; i++) {
        double tp = row->tp[i], fp = row->fp[i], p_mean = (tp + fp) / size, p_out = 1 - p_mean;
        double p2 = p_mean * p_mean, p_out2 = p_out * p_out;
        double both = (p_out + g_out) * (p_out + g_out), one = (p_out - g_mean) * (p_out - g_mean);
        double none = (p_mean + g_mean) * (p_mean + g_mean);
        double a = both / (p_out2 + g_out2), b = one / (p_out2 + g2);
        double c = one / (p2 + g_out2), d = none / (p2 + g2);
        double total = tp * (a * a);
        total += fp * (b * b);
        total += (positives - tp) * (c * c);
        total += (negatives - fp) * (d * d);
        out[i] = total * 0.25 / divisor;
    }
}

/* Composite metrics of a row, at its places. Without a pixel of a class, what divides by it is NaN. */
static void composite_values(const Above *row, bool is_image, double (*restrict out)[COLUMNS]) {
    double positives = row->positives == 0 ? NAN : row->positives;
    double negatives = row->negatives == 0 ? NAN : row->negatives, size = row->positives + row->negatives;
    for (int32_t i = 0; i < row->n; i++) {
        double t = row->tp[i], f = row->fp[i], predicted = t + f, recall = t / positives, fpr = f / negatives;
        out[F][i] = (t + BETA2 * t) / (predicted + BETA2 * positives);
        out[PRECISION][i] = t / (predicted > 1 ? predicted : 1);
        out[RECALL][i] = recall;
        out[IOU][i] = t / (positives + f);
        out[DICE][i] = 2 * t / (positives + predicted);
        out[SPECIFICITY][i] = 1 - fpr;
        out[FPR][i] = fpr;
        out[BER][i] = 0.5 * (1 - recall + fpr);
        out[KAPPA][i] = 2 * (t * negatives - f * positives) / (predicted * negatives + positives * (size - predicted));
    }
    for (int32_t i = 0; row->positives == 0 && i < row->n; i++) out[PRECISION][i] = NAN;
    double divisor = size;
    if (is_image) divisor = size - 1 > 1 ? size - 1 : 1;
    e_values(row, divisor, out[E]);
}

/* Exact area under the ROC curve: trapezoids, the last one down to the origin; sums are integers. */
static double area_under_curve(const Above *row) {
    if (row->negatives == 0 || row->positives == 0) return NAN;
    int32_t last = row->place[LEVELS - 1];
    double pairs = 0;
    for (int32_t i = 0; i < last; i++) pairs += (row->fp[i] - row->fp[i + 1]) * (row->tp[i] + row->tp[i + 1]);
    pairs = (pairs + row->fp[last] * row->tp[last]) / 2;
    return pairs / (row->positives * row->negatives);
}

static void frame_values(const Above *row, double (*values)[COLUMNS], int32_t first, double *out) {
    int32_t n = LEVELS - first;
    double f[LEVELS];
    for (int32_t i = first; i < LEVELS; i++) f[i] = values[F][row->place[i]];
    out[F_MEAN] = pairwise_sum(f + first, n) / n;
    out[F_MAX] = maximum(f + first, n);
    out[IOU_BINARY] = values[IOU][row->place[BINARY]];
    out[RECALL_BINARY] = values[RECALL][row->place[BINARY]];
    out[AUC] = area_under_curve(row);
}

void separable(const ImageCounts *in, const double *sums, double size, int32_t n, double *restrict out) {
    const double *whole = sums, *framed = sums + ((size_t)in->n_frames + 1) * (size_t)n;
    for (int32_t i = 0; i < n; i++) out[i] = in->n_frames ? 0 : whole[i] / size;
    if (in->n_frames == 0) return;
    for (int32_t frame = 0; frame < in->n_frames; frame++) {
        double weight = in->denominator / (double)in->frame_areas[frame];
        const double *row = sums + ((size_t)frame + 1) * (size_t)n;
        for (int32_t i = 0; i < n; i++) out[i] += weight * row[i];
    }
    double weight = in->background ? in->numerator / (double)in->background : 0.0;
    double divisor = in->n_frames * in->denominator + in->numerator;
    for (int32_t i = 0; i < n; i++) out[i] = (weight * whole[i] + (out[i] - weight * framed[i])) / divisor;
}

static void compute_accuracy(const ImageCounts *in, Curves *out) {
    for (int32_t i = 0; i < COLUMNS; i++) out->plain[ACCURACY * COLUMNS + i] = out->right[i] / out->size;
    separable(in, out->right, out->size, COLUMNS, out->si + ACCURACY * COLUMNS);
}

void compute_curves(const ImageCounts *in, Curves *out) {
    double values[N_COMPOSITE][COLUMNS];
    Above row;
    int32_t n_defined[N_COMPOSITE] = {0}, n_rows = in->n_frames + 2;
    memset(out->si, 0, N_COMPOSITE * COLUMNS * sizeof *out->si);
    for (int32_t index = 0; index < n_rows; index++) {
        count_above(in->counts + (size_t)index * 2 * (size_t)in->n_codes, in->n_codes, in->cuts, &row);
        double *right = out->right + (size_t)index * COLUMNS;
        for (int32_t i = 0; i < COLUMNS; i++)
            right[i] = row.tp[row.place[i]] + (row.negatives - row.fp[row.place[i]]);
        if (index == n_rows - 1) break; /* the union of the frames serves for accuracy only */
        if (index == 0) out->size = row.negatives + row.positives;
        composite_values(&row, index == 0, values);
        frame_values(&row, values, in->first, out->frames + (size_t)index * N_FRAME_VALUES);
        for (int32_t metric = 0; metric < N_COMPOSITE; metric++) {
            double *curve = (index == 0 ? out->plain : out->si) + metric * COLUMNS;
            if (index == 0)
                for (int32_t i = 0; i < COLUMNS; i++) curve[i] = values[metric][row.place[i]];
            if (index == 0 || isnan(values[metric][0])) continue; /* undefined at all thresholds or at none */
            n_defined[metric]++;
            for (int32_t i = 0; i < COLUMNS; i++) curve[i] += values[metric][row.place[i]];
        }
    }
    for (int32_t metric = 0; metric < N_COMPOSITE; metric++)
        for (int32_t i = 0; i < COLUMNS; i++) out->si[metric * COLUMNS + i] /= n_defined[metric];
    compute_accuracy(in, out);
}
