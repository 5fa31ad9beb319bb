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
	// OpenVINO is Intel's execution provider for CPUs. It is a plugin: the CPU build of ONNX Runtime loads it.
	OpenVINO = "openvino"
	// PluginVar is the environment variable that names the library of another OpenVINO plugin. Its files are not verified.
	PluginVar = "DDIFF_OPENVINO"
)

// LocatePlugin returns the OpenVINO plugin that [PluginVar] names, or the installed one in cacheDir (empty: its default,
// see [Options]), or that of the program's own directory (see [LocateOptions]). It returns [ErrNoPlugin] if there is none,
// and [ErrChecksum] if a file of the first one found is missing or was changed.
func LocatePlugin(cacheDir string) (Library, error) {
	if path := os.Getenv(PluginVar); path != "" {
		path, err := filepath.Abs(path)
		if err != nil {
			return Library{}, err
		}
		info, err := os.Stat(path)
		if err != nil {
			return Library{}, fmt.Errorf("%s: %w: %w", PluginVar, ErrNoPlugin, err)
		}
		if !info.Mode().IsRegular() {
			return Library{}, fmt.Errorf("%s: %w: %s is not a file", PluginVar, ErrNoPlugin, path)
		}
		return Library{Path: path, EP: OpenVINO, Source: PluginVar}, nil
	}
	release, err := releaseFor(OpenVINO, runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return Library{}, err
	}
	return release.plugin(pinnedPlaces(LocateOptions{CacheDir: cacheDir}))
}

// plugin returns the library of the plugin in the first place that has its directory.
func (r release) plugin(places []place) (Library, error) {
	const remedy = "run: ddiff runtime install --ep openvino"
	var searched []string
	for _, p := range places {
		dir := p.directory(r)
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			searched = append(searched, dir)
			continue
		}
		s, err := p.verify(r, dir)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %w", ErrChecksum, err)
		}
		if err != nil {
			return Library{}, fmt.Errorf("the installed OpenVINO plugin is damaged: %w; %s", err, remedy)
		}
		return r.library(s, dir, p.source), nil
	}
	return Library{}, fmt.Errorf("%w in %s; %s", ErrNoPlugin, strings.Join(searched, " or "), remedy)
}
