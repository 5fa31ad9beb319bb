// Package check tests ONNX files of users: priors, operators, metrics and bundles of a latent prior. It runs them on
// noise and images, and compares them with the reference vectors that their exporter wrote. It needs no Python.
//
// External data of a prior may be of any size, see modelfile.Open.
package check
