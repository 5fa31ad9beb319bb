package manifest

import (
	"regexp"
	"strings"
)

// LocalPrefix may begin a dataset's path to say that what follows is a path of this machine,
// whatever it looks like.
const LocalPrefix = "dir:"

// scheme begins an address that is no path of this machine.
var scheme = regexp.MustCompile(`^[a-z][a-z0-9+.-]*://`)

// IsAddress tells an address with a scheme, such as s3://bucket/key, from a path.
func IsAddress(path string) bool { return scheme.MatchString(path) }

// ResolveDataset makes the path of a dataset absolute, unless it is an address. Base is the
// absolute directory that it starts from.
func ResolveDataset(base, path string) string {
	if local, ok := strings.CutPrefix(path, LocalPrefix); ok && local != "" {
		return LocalPrefix + resolvePath(base, local)
	}
	return resolvePath(base, path)
}
