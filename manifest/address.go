package manifest

import (
	"regexp"
	"strings"
)

// LocalPrefix marks the rest of a dataset's path as a local path, whatever its form.
const LocalPrefix = "dir:"

// scheme matches the start of a remote address.
var scheme = regexp.MustCompile(`^[a-z][a-z0-9+.-]*://`)

// IsAddress reports whether path is an address with a scheme, such as s3://bucket/key.
func IsAddress(path string) bool { return scheme.MatchString(path) }

// ResolveDataset makes the path of a dataset absolute, unless it is an address. Base is the absolute
// directory of relative paths.
func ResolveDataset(base, path string) string {
	if local, ok := strings.CutPrefix(path, LocalPrefix); ok && local != "" {
		return LocalPrefix + resolvePath(base, local)
	}
	return resolvePath(base, path)
}
