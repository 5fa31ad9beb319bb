package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"

	"ddiff/coordinator/report"
	"ddiff/storage"
)

// s3Calls is the number of calls to an object store that are under way at once.
const s3Calls = 16

// isS3 tells an address of an object store from a directory.
func isS3(output string) bool { return strings.HasPrefix(output, "s3://") }

// results is where results go, ready for use.
type results struct {
	store storage.Store
	close func() error
}

// openResults opens a directory, which is locked against other processes, or an object store,
// where that is not needed: results are created once, whoever is first.
func openResults(ctx context.Context, place string, logger *slog.Logger) (*results, error) {
	if isS3(place) {
		return openS3(ctx, place, logger)
	}
	dir, err := storage.NewDir(place)
	if err != nil {
		return nil, err
	}
	lock, err := storage.AcquireLock(place)
	if err != nil {
		return nil, err
	}
	return &results{store: dir, close: lock.Unlock}, nil
}

// openShared opens the store of a cluster, which many processes use at once: a directory is
// not locked, since results are created once in it as well.
func openShared(ctx context.Context, place string, logger *slog.Logger) (*results, error) {
	if isS3(place) {
		return openS3(ctx, place, logger)
	}
	dir, err := storage.NewDir(place)
	if err != nil {
		return nil, err
	}
	return &results{store: dir, close: func() error { return nil }}, nil
}

func openS3(ctx context.Context, place string, logger *slog.Logger) (*results, error) {
	cfg, err := storage.ParseS3URL(place)
	if err != nil {
		return nil, usageError{err}
	}
	s3, err := storage.OpenS3(ctx, cfg)
	if err != nil {
		return nil, err
	}
	limited, err := storage.NewLimited(s3, s3Calls)
	if err != nil {
		return nil, err
	}
	retrying, err := storage.NewRetrying(limited, storage.RetryConfig{Logger: logger})
	if err != nil {
		return nil, err
	}
	return &results{store: retrying, close: func() error { s3.Close(); return nil }}, nil
}

// reportPlace is where the page of the report lies.
func reportPlace(place string) string {
	if !isS3(place) {
		return filepath.Join(place, report.KeyPage)
	}
	base, query, _ := strings.Cut(place, "?")
	base = strings.TrimSuffix(base, "/") + "/" + report.KeyPage
	if query != "" {
		base += "?" + query
	}
	return base
}
