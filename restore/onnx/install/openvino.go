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

// openVINORelease is the plugin, from the wheel on PyPI, with the libraries that a CPU needs: those for Intel's GPUs and
// NPUs are left out. The wheel has no licence file; METADATA states the licence.
func openVINORelease() release {
	const files = "onnxruntime_ep_openvino/"
	return release{
		version: "1.8.1",
		ep:      OpenVINO,
		sources: []source{{
			name:   ClientPip,
			client: pip("onnxruntime-ep-openvino==1.8.1", "manylinux_2_28_x86_64"),
			archive: archive{
				name:   "onnxruntime_ep_openvino-1.8.1-py3-none-manylinux_2_28_x86_64.whl",
				size:   52587628,
				digest: "sha512:Hs/dOGrwgQcOtLZ7p680/ID3lItjVMKvba1AlSui9kd8s2mFZWAiuf8j2j6xwXzSoa3XO2WtJrZhnizX0LgWKg==",
				format: zipped,
			},
			members: []member{
				{files + "libonnxruntime_providers_openvino_plugin.so", "libonnxruntime_providers_openvino_plugin.so", 3069280,
					"99644306dea90173d2fac5e2ad8d10c9574ecf6e6e71ca30e426531abd5a717f"},
				{files + "libopenvino.so.2641", "libopenvino.so.2641", 20526937,
					"9b9a80ac1f18e07b13ed54459d9a865bcfe9dc170dbf8fe740c2974b85ecedc1"},
				{files + "libopenvino_onnx_frontend.so.2641", "libopenvino_onnx_frontend.so.2641", 6827321,
					"82d499f5b5e8514def7aaa1ecd5a9f570542d33ae9d00a0077f707cccd0e0192"},
				{files + "libopenvino_intel_cpu_plugin.so", "libopenvino_intel_cpu_plugin.so", 63691929,
					"6599e3dd300d047b5ed72f8e48101c5f312c25321f35f57f803641ff8372900b"},
				{files + "libtbb.so.12", "libtbb.so.12", 369313,
					"ac9518497a4f2cb6729792730f145ee58367316031511923fef263c9ac81ca61"},
				{files + "libtbbmalloc.so.2", "libtbbmalloc.so.2", 159729,
					"0cccbdb4783bf190da19b34540fb7f749b0955ec1982d7ac8e5f398365399895"},
				{files + "third-party-programs.txt", "third-party-programs.txt", 13680,
					"cf1dc931aee305019c370a5e6398040e43afa8e22664118710f8b0e13c02de0c"},
				{"onnxruntime_ep_openvino-1.8.1.dist-info/METADATA", "METADATA", 4298,
					"97302cfcb1c9497dd4a7b2fe58eec2b07390aef7b3e387075a65f1c9ad5502a7"},
			},
		}},
	}
}

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
