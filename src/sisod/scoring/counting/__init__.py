"""Pixels -> counts: components, Voronoi regions, histograms, predicted objects and their errors."""
