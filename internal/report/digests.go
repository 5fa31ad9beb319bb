package report

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"ddiff/internal/regular"
	"ddiff/internal/report/result"
)

// KeyDigests names the list of the SHA-256 of all other files of a report, in the form that sha256sum -c reads. It is written last.
const KeyDigests = "SHA256SUMS"

// Keys returns the keys of the files of a report outside its folders.
func Keys() []string {
	return []string{KeyCSV, KeySummaryJSON, KeySummaryMarkdown, KeyMosaic, KeyPage, KeyDigests}
}

// digesting records the digests of the files that are put into a store.
type digesting struct {
	result.Files
	digests map[string]string
}

// digest returns the store, and the digests of the files that the report puts into it.
func digest(store result.Files) (result.Files, map[string]string) {
	digests := map[string]string{}
	if folder, ok := store.(result.Folder); ok { // the report knows the type
		folder.Files = digesting{folder.Files, digests}
		return folder, digests
	}
	return digesting{store, digests}, digests
}

// Put implements [result.Files].
func (d digesting) Put(ctx context.Context, key string, data []byte) error {
	d.digests[key] = regular.SHA256(data)
	return d.Files.Put(ctx, key, data)
}

// putDigests stores the list of digests.
func putDigests(ctx context.Context, store result.Files, digests map[string]string) error {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(digests)) {
		fmt.Fprintf(&b, "%s  %s\n", digests[key], key)
	}
	return store.Put(ctx, KeyDigests, []byte(b.String()))
}

// ParseDigests returns the digests of a list by key. A key outside the report's folder is an error.
func ParseDigests(list []byte) (map[string]string, error) {
	digests := map[string]string{}
	for text := range strings.Lines(string(list)) {
		sum, key, ok := strings.Cut(strings.TrimSuffix(text, "\n"), "  ")
		if raw, err := hex.DecodeString(sum); !ok || err != nil || len(raw) != 32 || !filepath.IsLocal(key) {
			return nil, fmt.Errorf("line %d is no digest of a file of the report", len(digests)+1)
		}
		digests[key] = sum
	}
	for _, key := range []string{KeyCSV, KeySummaryJSON, KeySummaryMarkdown, KeyPage} {
		if digests[key] == "" {
			return nil, fmt.Errorf("it has no digest of %s", key)
		}
	}
	return digests, nil
}
