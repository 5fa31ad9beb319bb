package install

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// place is a location of pinned releases.
type place struct {
	source    string                                      // of the libraries found here, a Source constant
	directory func(release) string                        // of a release
	verify    func(r release, dir string) (source, error) // returns the source of the files, see [installed]
}

// pinnedPlaces returns the cache and the program's own directory, without the ones that this machine lacks.
func pinnedPlaces(opts LocateOptions) []place {
	var all []place
	if cache, err := cacheDirectory(opts.CacheDir); err == nil {
		all = append(all, place{SourceCache, func(r release) string { return r.directory(cache) }, release.unchanged})
	}
	if own, err := ownDirectory(opts.OwnDir); err == nil {
		all = append(all, place{SourceProgram, func(r release) string { return r.ownDirectory(own) }, release.verified})
	}
	return all
}

// locate returns the library of the place, or the searched directories.
func (p place) locate(provider string) (lib Library, searched []string, found bool) {
	// A CUDA build without its dependencies still runs on the CPU; it is the last choice.
	order := map[string][]string{"": {CUDA, CPU}, CPU: {CPU, CUDA}, CUDA: {CUDA}}[provider]
	var unloadable *Library
	for _, ep := range order {
		release, err := releaseFor(ep, runtime.GOOS, runtime.GOARCH)
		if err != nil {
			continue // no release is pinned for this platform
		}
		dir := p.directory(release)
		source, err := p.verify(release, dir)
		if errors.Is(err, fs.ErrNotExist) {
			if !slices.Contains(searched, dir) { // the program's own directory has one release or the other
				searched = append(searched, dir)
			}
			continue
		} else if err != nil {
			searched = append(searched, dir+" ("+err.Error()+")")
			continue
		}
		lib := release.library(source, dir, p.source)
		if provider == "" && ep == CUDA && CUDALoadable(lib) != nil {
			unloadable = &lib
			continue
		}
		return lib, nil, true
	}
	if unloadable != nil {
		return *unloadable, nil, true
	}
	return Library{}, searched, false
}

// verified returns the source whose files are in dir. It always reads the files: other users may be able to write to a
// directory near the program.
func (r release) verified(dir string) (source, error) {
	return installed(context.Background(), r.Sources, dir, nil)
}

// ownDirectory returns dir, or the default of [LocateOptions.OwnDir].
func ownDirectory(dir string) (string, error) {
	if dir != "" {
		return filepath.Abs(dir)
	}
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	if program, err = filepath.EvalSymlinks(program); err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(filepath.Dir(program)), "lib", "ddiff"), nil
}

// ownDirectory returns the directory of the release in the program's own directory: OpenVINO has one of its own.
func (r release) ownDirectory(own string) string {
	if r.EP == OpenVINO {
		return filepath.Join(own, OpenVINO)
	}
	return own
}

// Build describes the files of a pinned release.
type Build struct {
	// EP is the execution provider, and Version the release.
	EP, Version string
	// Client is the name of the client that downloads the archive with these files, a Client constant.
	Client string
	// Archive is the file name of the archive, and Digest its digest: "sha256:" with hexadecimal, or "sha512:" with base64.
	Archive, Digest string
	// Files are the installed files, the library first.
	Files []File
}

// Verify reads the files of an execution provider's release for a platform in dir, and returns the release to which they
// belong. Errors are [ErrEP], [ErrUnsupported], [ErrChecksum], and [fs.ErrNotExist] for a missing file.
func Verify(ctx context.Context, dir, ep, goos, goarch string) (Build, error) {
	r, err := releaseFor(ep, goos, goarch)
	if err != nil {
		return Build{}, err
	}
	s, err := installed(ctx, r.Sources, dir, nil)
	if err != nil {
		return Build{}, err
	}
	return Build{EP: ep, Version: r.Version, Client: s.Client, Archive: s.Archive.Name, Digest: s.Archive.Digest, Files: s.Files}, nil
}

// PinnedVersion returns the version of an execution provider's release for this platform. Errors are [ErrEP] and
// [ErrUnsupported].
func PinnedVersion(ep string) (string, error) {
	r, err := releaseFor(ep, runtime.GOOS, runtime.GOARCH)
	return r.Version, err
}
