"""Plain PyTorch twin of ddiff: an independent second reading of the same equations.

The Go program builds ONNX graphs out of matrix products; this package says the same
things in the shortest PyTorch we could write, so that the two can be held against each
other. Nothing here runs in production.

    operators    the measurement operators A and the gradient of the data term
    schedule     noise schedule, respacing, sigma_t and gamma_t
    solver       DDiff (Algorithm 1) and its three variants
    onnx_prior   our ONNX score model as a native torch module, and the Gaussian prior
    twin         command line: run solver jobs that a Go test wrote down
    vectors      command line: write the operators' reference vectors
    bench        command line: time the solver in PyTorch on this CPU

Images are NCHW, three channels, values in [-1, 1].
"""
