"""Encoders: ResNet-50 and EfficientNet-Lite0."""
