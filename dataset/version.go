package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"

	"ddiff/manifest"
)

// maxVersioned limits the number of lists and shards of a dataset whose version is known.
const maxVersioned = 256

// Version identifies the bytes of the lists and shards of a dataset: it changes if one of them is written again. It is
// empty if it is unknown, as for directories, prefixes of buckets, servers without ETags, and more than 256 paths. The
// error is that of a list that cannot be opened.
func (s *Sources) Version(ctx context.Context, d manifest.Dataset) (string, error) {
	sum, n := sha256.New(), 0
	for path, err := range expand(d.Path) {
		if err != nil {
			return "", err
		}
		version, err := s.versionOf(ctx, path)
		if n++; err != nil || version == "" || n > maxVersioned {
			return "", err
		}
		fmt.Fprintf(sum, "%q %q\n", path, version) // never fails
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// versionOf returns the version of one list or shard, empty for other paths.
func (s *Sources) versionOf(ctx context.Context, path string) (string, error) {
	if !manifest.IsAddress(path) {
		abs, err := filepath.Abs(strings.TrimPrefix(path, manifest.LocalPrefix))
		if err != nil {
			return "", err
		}
		path = abs
	}
	a, err := Parse(path)
	if err != nil {
		return "", err
	}
	switch kindOf(a) {
	case kindList, kindParquet, kindShard:
		return s.version(ctx, a)
	}
	return "", nil
}
