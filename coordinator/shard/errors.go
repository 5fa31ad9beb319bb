package shard

import (
	"errors"

	"ddiff/storage"
)

// ErrMoved: the dataset has changed so that the rows that were not read yet cannot be told from the others. [Sharder.Windows]
// passes it to Config.Wait; [Sharder.Again] returns it.
var ErrMoved = errors.New("the dataset changed")

// IsUnavailable reports whether an error is one of the environment: a store or server that does not answer, expired or
// missing keys, an invalid certificate. Such an error says nothing about a row. All other errors are properties of the
// row or of the dataset.
func IsUnavailable(err error) bool {
	return errors.Is(err, storage.ErrUnavailable) || errors.Is(err, storage.ErrAccess) || errors.Is(err, storage.ErrCertificate)
}
