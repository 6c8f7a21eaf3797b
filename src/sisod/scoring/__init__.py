"""Arrays -> scores: the partition of a ground truth, counts of pixels, every metric."""
