"""PyTorch twin of ddiff: an independent implementation of the same equations, for tests and timings.

The Go program builds ONNX graphs from matrix products. This package implements the same
equations in short, plain PyTorch, and tests compare the two. It never runs in production.

    operators    the measurement operators A and the gradient of the data term
    schedule     noise schedule, respacing, sigma_t and gamma_t
    solver       DDiff (Algorithm 1) and its three variants
    onnx_prior   the ONNX score model as a native torch module, and the Gaussian prior
    wiener       the linear part of the score model
    twin         command line: run solver jobs that a Go test wrote
    vectors      command line: write the operators' reference vectors
    bench        command line: time the solver in PyTorch on this CPU
    compare      command line: time the solver in PyTorch and ddiff bench in turn

Images are NCHW, three channels, values in [-1, 1].
"""
