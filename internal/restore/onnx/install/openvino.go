package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	// OpenVINO is Intel's library for networks on CPUs of any maker, which the program loads beside the CPU build of ONNX Runtime.
	OpenVINO = "openvino"
	// OpenVINOVar is the environment variable that names another library libopenvino_c of OpenVINO. Its files are not verified.
	OpenVINOVar = "DDIFF_OPENVINO"
)

// LocateOpenVINO returns the OpenVINO that [OpenVINOVar] names, or the installed one in cacheDir (empty: its default,
// see [Options]), or that of the program's own directory (see [LocateOptions]). It returns [ErrNoOpenVINO] if there is none,
// [ErrChecksum] if a file of the first one found is missing or was changed, and [ErrWriters] if another user may change it.
func LocateOpenVINO(cacheDir string) (Library, error) {
	if path := os.Getenv(OpenVINOVar); path != "" {
		path, err := filepath.Abs(path)
		if err != nil {
			return Library{}, err
		}
		info, err := os.Stat(path)
		if err != nil {
			return Library{}, fmt.Errorf("%s: %w: %w", OpenVINOVar, ErrNoOpenVINO, err)
		}
		if !info.Mode().IsRegular() {
			return Library{}, fmt.Errorf("%s: %w: %s is not a file", OpenVINOVar, ErrNoOpenVINO, path)
		}
		return Library{Path: path, EP: OpenVINO, Source: OpenVINOVar}, nil
	}
	release, err := releaseFor(OpenVINO, runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return Library{}, err
	}
	return release.openVINO(pinnedPlaces(LocateOptions{CacheDir: cacheDir}))
}

// openVINO returns the library in the first place that has its directory.
func (r release) openVINO(places []place) (Library, error) {
	const remedy = "run: ddiff runtime install --ep openvino"
	var searched []string
	for _, p := range places {
		dir := p.directory(r)
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			searched = append(searched, dir)
			continue
		}
		s, err := p.installed(r)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %w", ErrChecksum, err)
		}
		if errors.Is(err, ErrWriters) {
			return Library{}, fmt.Errorf("the installed OpenVINO is not loaded: %w (%s)", err, OpenVINOVar)
		}
		if err != nil {
			return Library{}, fmt.Errorf("the installed OpenVINO is damaged: %w; %s", err, remedy)
		}
		return r.library(s, dir, p.source), nil
	}
	return Library{}, fmt.Errorf("%w in %s; %s", ErrNoOpenVINO, strings.Join(searched, " or "), remedy)
}
