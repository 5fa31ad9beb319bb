package install

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrNotFound says that no usable ONNX Runtime is in any of the places searched.
	ErrNotFound = errors.New("no ONNX Runtime library found")
	// ErrUnsupported says that no release is pinned for an execution provider on this platform,
	// or that a library cannot serve here: wrong architecture, too old, no CUDA provider.
	ErrUnsupported = errors.New("not supported")
	// ErrChecksum says that an archive or a library is not the pinned one.
	ErrChecksum = errors.New("checksum mismatch")
	// ErrUnsafeArchive says that an archive has an entry that could be written outside of the
	// destination, or is larger than any release.
	ErrUnsafeArchive = errors.New("unsafe archive")
	// ErrClientMissing says that the package client which gets a release is not installed.
	ErrClientMissing = errors.New("package client not installed")
)

// MissingLibrariesError names the shared libraries without which a CUDA provider cannot be loaded.
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
