"""Other APIs -> scoring: classes of PySODMetrics, computed by the engine."""
