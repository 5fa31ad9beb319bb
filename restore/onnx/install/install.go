package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Options configure an installation.
type Options struct {
	// EP is the build to install, [CPU] or [CUDA], or the plugin [OpenVINO]. Default: CPU.
	EP string
	// From is the release's archive: a file, or a URL (https, or http on this machine). Default: empty, which downloads
	// it with npm (CPU), Maven (CUDA) or pip (OpenVINO). The checksum is the same in all cases.
	From string
	// CacheDir contains a directory VERSION-EP for each installed release. Default: ddiff/onnxruntime in the user's cache
	// directory.
	CacheDir string
	// Progress receives the stages. Default: nil, none.
	Progress Progress
}

// Install installs the pinned release of an execution provider in the cache and returns its library. It returns an
// installed release that matches its checksums with source [SourceCache], and replaces a damaged one. Concurrent
// processes share one installation. An error leaves the cache unchanged.
//
// Errors include [ErrUnsupported], [ErrClientMissing], [ErrChecksum] and [ErrUnsafeArchive].
func Install(ctx context.Context, opts Options) (Library, error) {
	ep := opts.EP
	if ep == "" {
		ep = CPU
	}
	release, err := releaseFor(ep, runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return Library{}, err
	}
	lib, err := release.install(ctx, opts)
	if err != nil {
		return Library{}, fmt.Errorf("install %s: %w", release.title(), err)
	}
	return lib, nil
}

// workPattern matches the directories of unfinished installations.
const workPattern = ".install-*"

func (r release) install(ctx context.Context, opts Options) (lib Library, err error) {
	cache, err := cacheDirectory(opts.CacheDir)
	if err != nil {
		return Library{}, err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return Library{}, fmt.Errorf("create the cache: %w", err)
	}
	opts.Progress.begin(StageWait)
	unlock, err := lockCache(ctx, cache)
	if err != nil {
		return Library{}, err
	}
	defer func() { err = errors.Join(err, unlock()) }()

	final := r.directory(cache)
	switch err := r.verify(ctx, final, opts.Progress); {
	case err == nil:
		r.stampAll(final)
		return r.library(final, SourceCache), nil
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrChecksum):
		return Library{}, err
	}
	work, err := workDirectory(cache)
	if err != nil {
		return Library{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	staged, err := r.stage(ctx, work, opts)
	if err != nil {
		return Library{}, err
	}
	if err := os.Rename(final, filepath.Join(work, "replaced")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Library{}, fmt.Errorf("replace a damaged release: %w", err)
	}
	if err := os.Rename(staged, final); err != nil {
		return Library{}, fmt.Errorf("move the release into place: %w", err)
	}
	r.stampAll(final)
	return r.library(final, SourceInstall), nil
}

// workDirectory creates a directory for an installation, beside its destination so that a rename can move the result.
// The caller holds the lock, so existing work directories belong to killed processes.
func workDirectory(cache string) (string, error) {
	stale, err := filepath.Glob(filepath.Join(cache, workPattern))
	if err != nil {
		return "", err
	}
	for _, dir := range stale {
		if err := os.RemoveAll(dir); err != nil {
			return "", fmt.Errorf("remove an interrupted installation: %w", err)
		}
	}
	work, err := os.MkdirTemp(cache, workPattern)
	if err != nil {
		return "", fmt.Errorf("create a work directory: %w", err)
	}
	return work, nil
}

// stage fetches and verifies the archive, extracts it into a directory under work, and returns that directory.
func (r release) stage(ctx context.Context, work string, opts Options) (string, error) {
	download, staged := filepath.Join(work, "download"), filepath.Join(work, "staged")
	if err := errors.Join(os.Mkdir(download, 0o755), os.Mkdir(staged, 0o755)); err != nil {
		return "", err
	}
	var path string
	var err error
	if opts.From == "" {
		path, err = r.download(ctx, download, opts.Progress)
	} else {
		path, err = r.archive.fetch(ctx, opts.From, download, opts.Progress)
	}
	if err != nil {
		return "", err
	}
	if err := r.archive.verify(ctx, path, opts.Progress); err != nil {
		return "", err
	}
	return staged, r.extract(ctx, path, staged, opts.Progress)
}
