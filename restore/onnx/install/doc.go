// Package install finds the ONNX Runtime shared library on this machine, and puts a pinned one
// there.
//
// [Locate] looks where a user says first, then where [Install] puts things, then in the usual
// places. [Install] gets a release through the package client that the user already has (npm for
// the CPU build, Maven for the CUDA build), or from a file or URL on machines without a way to a
// registry. Sizes and checksums of every archive and every library are part of the program; what
// does not match them is never left where Locate looks.
//
// Nothing here loads a library into the process: versions, architectures and dependencies are read
// from the files.
package install
