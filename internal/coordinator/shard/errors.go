package shard

import (
	"errors"

	"ddiff/internal/failure"
	"ddiff/manifest"
	"ddiff/storage"
)

// ErrMoved: the dataset has changed so that the rows that were not read yet cannot be told from the others. [Sharder.Windows]
// passes it to Config.Wait; [Sharder.Again] returns it.
var ErrMoved = failure.New(failure.Input, "the dataset changed")

// IsUnavailable reports whether an error is one of the environment: a store or server that does not answer, expired or
// missing keys, an invalid certificate, a missing bucket, an object that arrives damaged. Such an error says nothing about a row. All other errors are properties of the
// row or of the dataset.
func IsUnavailable(err error) bool {
	return errors.Is(err, storage.ErrUnavailable) || errors.Is(err, storage.ErrAccess) ||
		errors.Is(err, storage.ErrCertificate) || errors.Is(err, storage.ErrNoBucket) || errors.Is(err, storage.ErrCorrupt)
}

// IsDatasetError reports whether an error concerns the dataset as a whole: it is missing, empty or not a usable list.
func IsDatasetError(err error) bool {
	missing := errors.Is(err, manifest.ErrNoDataset) || errors.Is(err, manifest.ErrEmptyDataset)
	// A list whose reading was interrupted is not a bad list.
	return missing || errors.Is(err, manifest.ErrBadList) && !IsUnavailable(err)
}

// mayReturn reports whether reading may succeed later: the environment recovers, a dataset that was there comes back, or a
// list is complete that was written while it was read.
func mayReturn(err error, at Position) bool {
	switch {
	case errors.Is(err, ErrMoved), errors.Is(err, storage.ErrChanged):
		return true
	case IsDatasetError(err):
		return at.Listed > 0
	}
	return IsUnavailable(err)
}
