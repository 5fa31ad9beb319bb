package guard

import (
	"errors"
	"io/fs"
	"net"
	"slices"
	"syscall"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/storage"
)

// environmentErrors are failures of store, network, disk and device. They say nothing about the item.
func environmentErrors() []error {
	return []error{
		storage.ErrUnavailable, storage.ErrAccess, storage.ErrReadOnly, storage.ErrNoSpace, storage.ErrNoBucket, storage.ErrCertificate,
		onnxruntime.ErrMemory, onnxruntime.ErrDevice, onnxruntime.ErrDeviceLost, onnxruntime.ErrFallback, fs.ErrPermission,
		syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.ESTALE, syscall.EROFS, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
	}
}

// Environmental reports whether an error is a failure of the worker's environment.
func Environmental(err error) bool {
	var timeout net.Error
	return slices.ContainsFunc(environmentErrors(), func(target error) bool { return errors.Is(err, target) }) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

// Temporary reports whether an environment may recover without a person.
func Temporary(err error) bool {
	var timeout net.Error
	return errors.Is(err, storage.ErrUnavailable) || errors.Is(err, onnxruntime.ErrMemory) || errors.As(err, &timeout) && timeout.Timeout()
}
