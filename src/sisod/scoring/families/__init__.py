"""The functions behind the metrics: of counts of pixels, of counts of objects, and of pixels."""
