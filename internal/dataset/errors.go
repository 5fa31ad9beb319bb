package dataset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"syscall"

	"ddiff/internal/failure"
	"ddiff/manifest"
	"ddiff/storage"
)

var (
	// ErrAddress: the text is not a supported address.
	ErrAddress = failure.New(failure.Input, "not an address")
	// ErrRefused: the configuration does not permit the address, for example its host, network, scheme or redirect,
	// or the server violates the protocol. A retry does not help.
	ErrRefused = failure.New(failure.Usage, "refused")
	// ErrNotFound: the object does not exist.
	ErrNotFound = failure.New(failure.Input, "not found")
	// ErrTooLarge: the object exceeds a limit of Config.
	ErrTooLarge = failure.New(failure.Input, "too large")
	// ErrChanged: the object has changed since the listing, or while it was read. Submit the campaign again. It is a
	// [storage.ErrChanged]. If the rows of a dataset end with it, the remaining rows are unknown.
	ErrChanged error = &alias{errors.New("changed since it was listed"), storage.ErrChanged}
	// ErrUnavailable: the server did not answer or reported a temporary failure, or a disk failed. A retry may help. If the
	// rows of a dataset end with it, the remaining rows are unknown. It is a [storage.ErrUnavailable].
	ErrUnavailable error = &alias{errors.New("unavailable"), storage.ErrUnavailable}
	// ErrDenied: the credentials do not permit reading. The error of a bucket is a [storage.ErrAccess] too: its keys may have
	// expired, which concerns all its objects. A web server gets no keys, so its refusal concerns one address.
	ErrDenied = failure.New(failure.Input, "access denied")
	// ErrBadArchive: the tar shard or Parquet file is damaged or uses unsupported features. It is a
	// [manifest.ErrBadList].
	ErrBadArchive error = &alias{errors.New("not a usable archive"), manifest.ErrBadList}
)

// alias is an error that is also an error of another package.
type alias struct {
	error
	also error
}

// Unwrap returns the other error.
func (a *alias) Unwrap() error { return a.also }

func storageError(err error) error {
	for _, pair := range []struct{ theirs, ours error }{
		{storage.ErrNotFound, ErrNotFound},
		{storage.ErrNoBucket, ErrNotFound},
		{storage.ErrTooLarge, ErrTooLarge},
		{storage.ErrChanged, ErrChanged},
		{storage.ErrAccess, ErrDenied},
		{storage.ErrUnavailable, ErrUnavailable},
		{storage.ErrBadKey, ErrAddress},
	} {
		if errors.Is(err, pair.theirs) {
			return fmt.Errorf("%w: %w", pair.ours, err)
		}
	}
	return err
}

func fileError(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %w", ErrDenied, err)
	}
	for _, fault := range []error{syscall.EIO, syscall.ESTALE, syscall.ETIMEDOUT, syscall.EHOSTDOWN, syscall.ENOTCONN, syscall.ENETUNREACH} {
		if errors.Is(err, fault) { // of a disk or a network file system
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	return err
}

// permanent reports whether err concerns one object and a retry does not help. All other errors end the dataset. Missing
// access to a bucket may concern all objects, and a list whose reading was interrupted is not a bad list.
func permanent(err error) bool {
	for _, sentinel := range []error{storage.ErrUnavailable, storage.ErrAccess, storage.ErrCertificate, storage.ErrChanged} {
		if errors.Is(err, sentinel) {
			return false
		}
	}
	for _, sentinel := range []error{ErrAddress, ErrRefused, ErrNotFound, ErrTooLarge, ErrDenied, manifest.ErrBadList, manifest.ErrNoDataset, manifest.ErrEmptyDataset} {
		if errors.Is(err, sentinel) {
			return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
		}
	}
	return false
}

// withoutURL removes the URL from an error of net/http, since its query may be a secret.
func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}
