"""Files -> arrays: storage, images, pairs, data sets, synthetic scenes."""
