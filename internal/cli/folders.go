package cli

import (
	"log/slog"
	"os"
	"path/filepath"
)

// ScratchPrefix begins the name of a scratch directory among the temporary files.
const ScratchPrefix = "ddiff-queue-"

// RestorationsFolder returns the folder of the results that are not kept.
func RestorationsFolder() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "ddiff", "restore"), err
}

// BatchSizesFile is the file of the measured batch sizes.
func BatchSizesFile(log *slog.Logger) string { return filepath.Join(UserCache(log), "batch.json") }

// UserCache returns the program's cache directory. Without a user cache directory it is among the temporary files.
func UserCache(log *slog.Logger) string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
		log.Warn("no user cache directory, using a temporary directory", "directory", dir, "reason", err)
	}
	return filepath.Join(dir, "ddiff")
}
