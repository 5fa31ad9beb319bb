// Package check examines files that people bring: priors, operators, metrics and bundles of a
// latent prior. It runs them on noise and on images, and holds them against reference vectors
// that their exporter wrote beside them. It needs no Python.
//
// A file with external data is read whole, see onnx.ReadFile.
package check
