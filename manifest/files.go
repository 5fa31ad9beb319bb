package manifest

import (
	"context"
	"errors"
	"io/fs"
	"regexp"
	"strings"
	"unicode/utf8"

	"ddiff/internal/regular"
)

// MaxFileBytes is the size limit of a dataset's file, in bytes.
const MaxFileBytes = 1 << 30

// Files reads local files of datasets.
type Files struct{}

// Get returns the contents of a regular file of at most MaxFileBytes. Errors are those of regular.Open.
func (Files) Get(ctx context.Context, path string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return regular.Read(path, MaxFileBytes)
}

// LocalPrefix marks the rest of a dataset's path as a local path, whatever its form.
const LocalPrefix = "dir:"

// scheme matches the start of a remote address.
var scheme = regexp.MustCompile(`^[a-z][a-z0-9+.-]*://`)

// IsAddress reports whether path is an address with a scheme, such as s3://bucket/key.
func IsAddress(path string) bool { return scheme.MatchString(path) }

// ResolveDataset makes the path of a dataset absolute, unless it is an address. Base is the absolute
// directory of relative paths. Braces around absolute paths, which several arguments become, stay as they are.
func ResolveDataset(base, path string) string {
	if list, ok := strings.CutPrefix(path, "{"); ok && resolvePath(base, list) == list {
		return path
	}
	if local, ok := strings.CutPrefix(path, LocalPrefix); ok && local != "" {
		return LocalPrefix + resolvePath(base, local)
	}
	return resolvePath(base, path)
}

// CheckFile returns an error unless a path is a readable, regular, non-empty file. It follows symbolic links. The error for
// directories, pipes and devices is a regular.ErrKind.
func CheckFile(path string) error {
	if !utf8.ValidString(path) {
		return errors.New("the file name is not valid UTF-8; rename the file")
	}
	f, size, err := regular.Open(path, regular.NoLimit)
	if err != nil {
		return reason(err)
	}
	if err := f.Close(); err != nil || size > 0 {
		return err
	}
	return ErrEmptyFile
}

// reason returns a file system error without operation and path, which the caller adds.
func reason(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
