package main

import (
	"log/slog"
	"os"
	"path/filepath"
)

// scratchPattern begins the name of a scratch directory among the temporary files.
const scratchPattern = "ddiff-queue-"

// restorationsFolder returns the folder of the results that are not kept.
func restorationsFolder() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "ddiff", "restore"), err
}

// batchSizes is the file of the measured batch sizes.
func batchSizes(log *slog.Logger) string { return filepath.Join(userCache(log), "batch.json") }

// userCache returns the program's cache directory. Without a user cache directory it is among the temporary files.
func userCache(log *slog.Logger) string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
		log.Warn("no user cache directory, using a temporary directory", "directory", dir, "reason", err)
	}
	return filepath.Join(dir, "ddiff")
}
