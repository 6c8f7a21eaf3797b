"""Models of other people: how they are named, built, loaded and wrapped as networks.

`wrap` is a name of `sisod.networks`. ONNX files are run without PyTorch, by `networks.onnx_model`.
"""
