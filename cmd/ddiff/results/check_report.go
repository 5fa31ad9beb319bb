package results

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"ddiff/coordinator/report"
	"ddiff/internal/redact"
	"ddiff/internal/regular"
	"ddiff/manifest"
	"ddiff/storage"
)

// reportRemedy is the remedy for a report that was changed.
const reportRemedy = "run the campaign again, which writes the report from the results"

// verifyReport compares the files of the report in an output with their digests. It returns nil for an argument without a report.
func verifyReport(ctx context.Context, arg string) (*output, error) {
	if !manifest.IsAddress(arg) {
		if info, err := os.Stat(arg); err != nil || !info.IsDir() {
			return nil, nil //nolint:nilnil // an item, or nothing: the items have the error
		}
		return checkReport(ctx, thisMachine(), func(key string) string { return filepath.Join(arg, filepath.FromSlash(key)) })
	}
	address, id := itemAddress(arg)
	if id != "" {
		return nil, nil //nolint:nilnil // an item has no report
	}
	opened, err := storage.Open(ctx, address, storage.Options{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", redact.Address(address), err)
	}
	defer opened.Close() //nolint:errcheck // nothing was written
	from := storeOrigin(opened.Store, address)
	from.show = func(key string) string { return storage.Locate(address, key) }
	return checkReport(ctx, from, func(key string) string { return key })
}

// checkReport checks a report whose files are at path(key) of an origin.
func checkReport(ctx context.Context, from origin, path func(key string) string) (*output, error) {
	list := path(report.KeyDigests)
	o := &output{File: list, from: from}
	data, err := from.get(ctx, list)
	if errors.Is(err, fs.ErrNotExist) {
		for _, key := range report.Keys() {
			if _, err := from.get(ctx, path(key)); !errors.Is(err, fs.ErrNotExist) {
				o.addProblem(list, "file", "is missing beside %s; %s", key, reportRemedy)
				return o, nil
			}
		}
		return nil, nil //nolint:nilnil // an interrupted campaign has no report
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", from.show(list), err)
	}
	digests, err := report.ParseDigests(data)
	if err != nil {
		o.addProblem(list, "file", "%v; %s", err, reportRemedy)
		return o, nil
	}
	for _, key := range slices.Sorted(maps.Keys(digests)) {
		data, err := from.get(ctx, path(key))
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, fs.ErrNotExist):
			o.addProblem(path(key), "file", "is missing; %s", reportRemedy)
		case err != nil:
			o.addProblem(path(key), "file", "cannot be read: %v", err)
		case regular.SHA256(data) != digests[key]:
			o.addProblem(path(key), "file", "has the SHA-256 %.12s, %s says %.12s: it was changed; %s", regular.SHA256(data), report.KeyDigests, digests[key], reportRemedy)
		}
	}
	o.OK = len(o.Problems) == 0
	return o, nil
}
