package dataset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"

	"ddiff/manifest"
	"ddiff/storage"
)

var (
	// ErrAddress: a text is no address that can be read.
	ErrAddress = errors.New("not an address")
	// ErrRefused: the configuration does not allow to read there: the host is not on the
	// list, the network is private, the connection is not encrypted, a redirect leads
	// elsewhere. Trying again does not help.
	ErrRefused = errors.New("refused")
	// ErrNotFound: there is nothing at the address.
	ErrNotFound = errors.New("not found")
	// ErrTooLarge: what is at the address is larger than Config allows.
	ErrTooLarge = errors.New("too large")
	// ErrChanged: the object is no longer the one that was listed. Submit the campaign again.
	ErrChanged = errors.New("changed since it was listed")
	// ErrUnavailable: no answer, or one that says "not now". Trying again may help. When the
	// rows of a dataset end with it, nothing is known about those that are missing.
	ErrUnavailable = errors.New("unavailable")
	// ErrDenied: the server does not let these credentials, or anybody, read there.
	ErrDenied = errors.New("access denied")
	// ErrBadArchive: a tar shard or a Parquet file cannot be read as one.
	ErrBadArchive = errors.New("not a usable archive")
)

// storageError puts the sentinel of this package in front of an error of a store.
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

// fileError puts the sentinel of this package in front of an error of the file system.
func fileError(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %w", ErrDenied, err)
	}
	return err
}

// lasting tells what is wrong with one object, and will be the next time, from what has to end
// the reading of a dataset: interrupted, or unavailable, or a fault of this program.
func lasting(err error) bool {
	for _, sentinel := range []error{ErrAddress, ErrRefused, ErrNotFound, ErrTooLarge, ErrDenied, ErrBadArchive, manifest.ErrBadList} {
		if errors.Is(err, sentinel) {
			return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
		}
	}
	return false
}

// plain drops the address from an error of net/http: its query may be a secret.
func plain(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}
