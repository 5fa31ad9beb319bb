// Package install locates and installs the ONNX Runtime shared library.
//
// [Locate] searches the user's path, then the cache of [Install], then the directory lib/ddiff that is unpacked with the
// program. [Install] downloads a release with the first client that works (npm, pip or curl for the CPU build; Maven or pip for
// the CUDA build; pip for OpenVINO), or takes it from a file on machines without access to a registry. The program contains the
// size and checksum of every archive and library; files that do not match are never installed.
//
// The package loads no library into the process: it reads versions, architectures and dependencies from the files.
package install
