// Package check tests ONNX files of users: priors, operators, metrics and bundles of a latent prior. It runs them on
// noise and images, and compares them with the reference vectors that their exporter wrote. It needs no Python.
//
// External data is read into memory, see modelfile.ReadFile.
package check
