package gpuworker

import (
	"errors"
	"io/fs"
	"net"
	"slices"
	"syscall"

	"ddiff/restore/onnx/onnxruntime"
	"ddiff/storage"
)

// sourceError is an error of reading a file of a dataset. Its text is that of the cause.
type sourceError struct{ error }

func (e sourceError) Unwrap() error { return e.error }

// fromSource reports whether an error comes from the files of a dataset.
func fromSource(err error) bool {
	var s sourceError
	return errors.As(err, &s)
}

// environmentErrors are failures of store, network, disk and device. They say nothing about the item.
func environmentErrors() []error {
	return []error{
		storage.ErrUnavailable, storage.ErrAccess, storage.ErrReadOnly, storage.ErrNoSpace, storage.ErrNoBucket, storage.ErrCertificate,
		onnxruntime.ErrMemory, onnxruntime.ErrDeviceLost, onnxruntime.ErrFallback, fs.ErrPermission,
		syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.ESTALE, syscall.EROFS, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
	}
}

// environmental reports whether an error is a failure of the worker's environment.
func environmental(err error) bool {
	var timeout net.Error
	return slices.ContainsFunc(environmentErrors(), func(target error) bool { return errors.Is(err, target) }) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

// temporary reports whether an environment may recover without a person.
func temporary(err error) bool {
	var timeout net.Error
	return errors.Is(err, storage.ErrUnavailable) || errors.Is(err, onnxruntime.ErrMemory) || errors.As(err, &timeout) && timeout.Timeout()
}
