"""A run's model as one file that needs no ParetoDA: ONNX, or a program of torch.export; checked before that."""
