package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// EnvVar is the environment variable that names the library's file.
const EnvVar = "DDIFF_ONNXRUNTIME"

// LocateOptions configure a search. The zero value searches the default locations for any library.
type LocateOptions struct {
	// Path is the user's library. Default: empty, none.
	Path string
	// EP is [CPU], [CUDA] or empty. CUDA accepts only a build with a CUDA provider. Empty selects the installed CUDA
	// build if its dependencies are installed too (see [CUDALoadable]), and otherwise prefers the CPU build.
	EP string
	// CacheDir is the cache of [Install]. Default: that of [Options.CacheDir].
	CacheDir string
	// OwnDir is the directory of a release that was unpacked with the program. Default: lib/ddiff beside the program's
	// directory, so /usr/local/lib/ddiff for /usr/local/bin/ddiff. Links to the program are followed.
	OwnDir string
	// Environ looks up environment variables. Default: [os.Getenv].
	Environ func(string) string
}

// Locate finds the ONNX Runtime library: opts.Path, then the variable [EnvVar], then the cache, then the program's own
// directory. A path from one of the first two has no fallback: it is used or is an error. A library of the cache or of the
// program's own directory must match its pinned sizes, and no other user may change the cache. [ErrNotFound] lists the searched locations.
func Locate(opts LocateOptions) (Library, error) {
	if opts.EP != "" && opts.EP != CPU && opts.EP != CUDA {
		return Library{}, fmt.Errorf("%w %q: use %q or %q", ErrEP, opts.EP, CPU, CUDA)
	}
	environ := opts.Environ
	if environ == nil {
		environ = os.Getenv
	}
	const flag = "--onnxruntime"
	if opts.Path != "" {
		return named(opts.Path, opts.EP, flag)
	}
	if path := environ(EnvVar); path != "" {
		return named(path, opts.EP, EnvVar)
	}

	searched := []string{flag + " (not given)", EnvVar + " (not set)"}
	for _, p := range pinnedPlaces(opts) {
		lib, tried, found := p.locate(opts.EP)
		if found {
			return lib, nil
		}
		searched = append(searched, tried...)
	}
	command := "ddiff runtime install"
	if opts.EP == CUDA {
		command += " --ep cuda"
	}
	return Library{}, fmt.Errorf("%w; run: %s; searched: %s", ErrNotFound, command, strings.Join(searched, ", "))
}

// named returns the library that the user named by source, a flag or variable.
func named(path, ep, source string) (Library, error) {
	if _, err := os.Stat(path); err != nil {
		return Library{}, fmt.Errorf("%s: %w: %w; name another library, or omit it and run: ddiff runtime install", source, ErrNotFound, err)
	}
	lib, err := inspect(path, ep, source)
	if err != nil {
		return Library{}, fmt.Errorf("open the ONNX Runtime named by %s: %w", source, err)
	}
	return lib, nil
}

// cacheDirectory returns dir or its default as an absolute path.
func cacheDirectory(dir string) (string, error) {
	if dir != "" {
		return filepath.Abs(dir)
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache directory: %w", err)
	}
	return filepath.Join(user, "ddiff", "onnxruntime"), nil
}

// place is a location of pinned releases. Their files have the sizes of the pinned ones; Install and Verify read them.
type place struct {
	source    string               // of the libraries found here, a Source constant
	directory func(release) string // of a release
}

// installed returns the source of a release whose files are here.
func (p place) installed(r release) (source, error) {
	s, err := installed(r.Sources, p.directory(r), source.checkSizes)
	if err == nil && p.source == SourceCache {
		err = checkWriters(p.directory(r), s.Files)
	}
	return s, err
}

// pinnedPlaces returns the cache and the program's own directory, without the ones that this machine lacks.
func pinnedPlaces(opts LocateOptions) []place {
	var all []place
	if cache, err := cacheDirectory(opts.CacheDir); err == nil {
		all = append(all, place{SourceCache, func(r release) string { return r.directory(cache) }})
	}
	if own, err := ownDirectory(opts.OwnDir); err == nil {
		all = append(all, place{SourceProgram, func(r release) string { return r.ownDirectory(own) }})
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
		s, err := p.installed(release)
		if errors.Is(err, fs.ErrNotExist) {
			if !slices.Contains(searched, dir) { // the program's own directory has one release or the other
				searched = append(searched, dir)
			}
			continue
		} else if err != nil {
			searched = append(searched, dir+" ("+err.Error()+")")
			continue
		}
		lib := release.library(s, dir, p.source)
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
