package install

import (
	"fmt"
	"strings"

	"ddiff/internal/failure"
)

var (
	// ErrNotFound: no searched location has a usable ONNX Runtime.
	ErrNotFound = failure.New(failure.Runtime, "no ONNX Runtime library found")
	// ErrNoOpenVINO: OpenVINO is not installed.
	ErrNoOpenVINO = failure.New(failure.Runtime, "no OpenVINO")
	// ErrEP: the execution provider has no builds.
	ErrEP = failure.New(failure.Input, "unknown execution provider")
	// ErrUnsupported: no release is pinned for an execution provider on this platform, or a library cannot be used
	// (wrong architecture, too old, no CUDA provider).
	ErrUnsupported = failure.New(failure.Runtime, "not supported")
	// ErrChecksum: an archive or a library differs from the pinned one.
	ErrChecksum = failure.New(failure.Runtime, "checksum mismatch")
	// ErrWriters: another user may change the files of the cache, so that they are not loaded.
	ErrWriters = failure.New(failure.Runtime, "another user may change the library; remove that permission, or name a library by its path")
	// ErrClientMissing: a package client for a release is not installed.
	ErrClientMissing = failure.New(failure.Runtime, "not installed")
	// ErrClient: there is no client of this name.
	ErrClient = failure.New(failure.Input, "unknown client")
	// ErrDownload: no client downloaded an archive of the release.
	ErrDownload = failure.New(failure.Runtime, "no client downloaded it")
)

// MissingLibrariesError lists shared libraries that a CUDA provider needs and that are missing.
type MissingLibrariesError struct {
	// Provider is the path of the CUDA provider library.
	Provider string
	// Missing are file names such as libcudnn.so.9, sorted.
	Missing []string
}

func (e *MissingLibrariesError) Error() string {
	return fmt.Sprintf("CUDA provider %s: missing %s: install the NVIDIA driver, the CUDA libraries and cuDNN "+
		"with these names, or add their directories to LD_LIBRARY_PATH", e.Provider, strings.Join(e.Missing, ", "))
}
