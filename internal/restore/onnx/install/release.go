package install

import (
	_ "embed" // the pinned releases
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// pinned lists the releases with the size and the digest of every archive and file. The packages of npm, of the Python
// package index and of the project's release page are separate builds of one version; on Linux x64, only that of npm
// contains the WebGPU provider. Several public projects pin each digest of the release page's archives; these archives were
// not downloaded for the list. Of OpenVINO's wheel, it has the libraries that a CPU needs.
//
//go:embed pinned.json
var pinned []byte

// releases parses the list once. It is part of the program, so that an error is one of the build.
var releases = sync.OnceValue(func() (all []release) {
	if err := json.Unmarshal(pinned, &all); err != nil {
		panic(fmt.Sprintf("install: pinned.json: %v", err))
	}
	return all
})

// release is one pinned build.
type release struct {
	EP, Version string
	Platform    string // GOOS/GOARCH
	// Sources are the archives with the build, in the order in which their clients are tried.
	Sources []source
}

// source is one archive of a release and the client that downloads it. The files of two sources may differ, because the
// project builds each package on its own.
type source struct {
	Client   string // a Client constant
	Package  string // as the client names it; a URL for curl
	Platform string // of a wheel, as the Python package index names it
	Archive  archive
	Files    []File // to install; the first is the library to load
}

// archive is a published file.
type archive struct {
	Name   string // file name, as the client writes it
	Size   int64  // bytes
	Digest string // as registries publish it: "sha256:" with hexadecimal, or "sha512:" with base64
}

// File is one file of an archive.
type File struct {
	Path   string // in the archive
	Name   string // in the installed directory
	Size   int64  // bytes
	SHA256 string // hexadecimal
}

// title names the release in messages.
func (r release) title() string {
	if r.EP == OpenVINO {
		return "OpenVINO " + r.Version
	}
	return fmt.Sprintf("ONNX Runtime %s for %s", r.Version, r.EP)
}

// directory returns the directory of the release in the cache.
func (r release) directory(cache string) string {
	return filepath.Join(cache, r.Version+"-"+r.EP)
}

// library returns the library that s installed in the directory of the release.
func (r release) library(s source, directory, origin string) Library {
	return Library{Path: filepath.Join(directory, s.Files[0].Name), EP: r.EP, Source: origin, Version: r.Version}
}

// releaseFor returns the pinned release of an execution provider for a platform.
func releaseFor(ep, goos, goarch string) (release, error) {
	known := false
	for _, r := range releases() {
		if known = known || r.EP == ep; r.EP == ep && r.Platform == goos+"/"+goarch {
			return r, nil
		}
	}
	switch {
	case !known:
		return release{}, fmt.Errorf("%w %q: use %q, %q or %q", ErrEP, ep, CPU, CUDA, OpenVINO)
	case ep == OpenVINO:
		return release{}, fmt.Errorf("install OpenVINO on %s/%s: %w: on x86-64, build it and set %s to its path",
			goos, goarch, ErrUnsupported, OpenVINOVar)
	}
	return release{}, fmt.Errorf("install ONNX Runtime with %s on %s/%s: %w: build or download it and set %s to its path",
		ep, goos, goarch, ErrUnsupported, EnvVar)
}

// zipped reports whether an archive is a zip archive, else a compressed tar archive.
func (a archive) zipped() bool { return !strings.HasSuffix(a.Name, ".tgz") }

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
func Verify(dir, ep, goos, goarch string) (Build, error) {
	r, err := releaseFor(ep, goos, goarch)
	if err != nil {
		return Build{}, err
	}
	s, err := installed(r.Sources, dir, source.verify)
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

// sourcesOf returns the sources of r that name selects: one, or all for the empty name.
func (r release) sourcesOf(name string) ([]source, error) {
	if name == "" {
		return r.Sources, nil
	}
	var names []string
	for i, s := range r.Sources {
		if s.Client == name {
			return r.Sources[i : i+1], nil
		}
		names = append(names, s.Client)
	}
	if !slices.Contains([]string{ClientNPM, ClientPip, ClientMaven, ClientCurl}, name) {
		return nil, fmt.Errorf("%w %q: use %s", ErrClient, name, strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("no archive for %s is pinned for client %s: %w: use %s", r.EP, name, ErrUnsupported, strings.Join(names, ", "))
}
