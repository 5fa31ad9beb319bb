package install

import (
	"fmt"
	"path/filepath"
)

// release is one pinned build with its archive.
type release struct {
	version string
	ep      string
	archive archive
	client  client
	// members are the files to install; the first is the library to load.
	members []member
}

// archive is the published file of a release.
type archive struct {
	name   string // file name, as the package client writes it
	size   int64  // bytes
	sha512 string // base64
	format format
}

// format is the format of an archive.
type format int

const (
	tarGzip format = iota
	zipped
)

// member is one file of an archive.
type member struct {
	path   string // in the archive
	name   string // in the installed directory
	size   int64  // bytes
	sha256 string // hexadecimal
}

// title names the release in messages.
func (r release) title() string {
	if r.ep == OpenVINO {
		return "the OpenVINO plugin " + r.version
	}
	return fmt.Sprintf("ONNX Runtime %s for %s", r.version, r.ep)
}

// directory returns the directory of the release in the cache.
func (r release) directory(cache string) string {
	return filepath.Join(cache, r.version+"-"+r.ep)
}

// library returns the library of the release in its directory.
func (r release) library(directory, source string) Library {
	return Library{
		Path:    filepath.Join(directory, r.members[0].name),
		EP:      r.ep,
		Source:  source,
		Version: r.version,
	}
}

// releaseFor returns the pinned release of an execution provider for a platform.
func releaseFor(ep, goos, goarch string) (release, error) {
	switch ep {
	case CPU:
		if library, ok := nodeLibraries[goos+"/"+goarch]; ok {
			return nodeRelease(library), nil
		}
	case CUDA:
		if goos == "linux" && goarch == "amd64" {
			return cudaRelease(), nil
		}
	case OpenVINO:
		if goos == "linux" && goarch == "amd64" {
			return openVINORelease(), nil
		}
		return release{}, fmt.Errorf("install the OpenVINO plugin on %s/%s: %w: build it and set %s to its path",
			goos, goarch, ErrUnsupported, PluginVar)
	default:
		return release{}, fmt.Errorf("%w %q: use %q, %q or %q", ErrEP, ep, CPU, CUDA, OpenVINO)
	}
	return release{}, fmt.Errorf("install ONNX Runtime with %s on %s/%s: %w: build or download it and set %s to its path",
		ep, goos, goarch, ErrUnsupported, EnvVar)
}

// nodeLibraries are the libraries in the npm package, by platform.
var nodeLibraries = map[string]member{
	"linux/amd64": {"package/bin/napi-v6/linux/x64/libonnxruntime.so.1", "libonnxruntime.so.1", 45828512,
		"ffb75a925ba05e47b235bb66e3e3911714a80b328a9c9425539feb204aa32a23"},
	"linux/arm64": {"package/bin/napi-v6/linux/arm64/libonnxruntime.so.1", "libonnxruntime.so.1", 25135496,
		"1f549d46250b005580b597f4164984aaf75b3bcb9f3aeb07c7f8a8fe60b23c76"},
	"darwin/arm64": {"package/bin/napi-v6/darwin/arm64/libonnxruntime.1.30.0.dylib", "libonnxruntime.1.dylib", 44589928,
		"685d2be5dba1309c89d3a5324b7fd06a5c42f1a61bfea32d14c4cc28d072121d"},
}

// nodeRelease is the CPU build, from the npm package. The package has no licence file; package.json and README state the
// licence.
func nodeRelease(library member) release {
	return release{
		version: "1.30.0",
		ep:      CPU,
		archive: archive{
			name:   "onnxruntime-node-1.30.0.tgz",
			size:   113507888,
			sha512: "twhs1C2C/BFkz1yc5OY0KIU2GUq6DURO7hD4bx5Q2Qy3nAMJwRXW8xU3NVczE29VA9lolLOYepoD8fjTGOfIqw==",
			format: tarGzip,
		},
		client: client{
			"npm", []string{"pack", "onnxruntime-node@1.30.0", "--loglevel=error", "--pack-destination="}, "install Node.js with npm",
		},
		members: []member{
			library,
			{"package/package.json", "package.json", 1593,
				"0871cd56ac2b9c9dfc834c7eabba819e5d4f966f005388515abb3402b14e0874"},
			{"package/README.md", "README.md", 3030,
				"c2b487948c9aed0a5ca8ef7717d78cbc81cfb65e5697d2ad6e2b7bd6fa8bc91b"},
		},
	}
}

// cudaRelease is the build with CUDA 12, from the Maven artifact.
func cudaRelease() release {
	const native = "ai/onnxruntime/native/linux-x64/"
	return release{
		version: "1.29.0",
		ep:      CUDA,
		archive: archive{
			name:   "onnxruntime_gpu-1.29.0.jar",
			size:   642295340,
			sha512: "xOUzD4B05cmuKJ7RXgu/2jvLxqH5r0MDwSHeu+r+Aj4r/HtzRcQ+qJ1ZfyAJLr/wdkhhm3/xYIrWi8rQeHuvQw==",
			format: zipped,
		},
		client: client{"mvn", []string{
			"-q", "-B", "dependency:copy", "-Dartifact=com.microsoft.onnxruntime:onnxruntime_gpu:1.29.0:jar", "-DoutputDirectory=",
		}, "install Maven"},
		members: []member{
			{native + "libonnxruntime.so", "libonnxruntime.so", 31958904,
				"b81e7ceaba1131e391f94c455d71ecf9af8ec7999d7130beebb79c67a0c7e05d"},
			{native + "libonnxruntime_providers_cuda.so", "libonnxruntime_providers_cuda.so", 582659240,
				"310d2cfdc5feead352318eaf9e6b11cd0f9ef96d29c4ad759ced7da7ff9a21b5"},
			{native + "libonnxruntime_providers_shared.so", "libonnxruntime_providers_shared.so", 14632,
				"c6a12593396095f5670160e284c35d1700b7708cf3037b7042e2a5200ccae772"},
			{native + "libonnxruntime_providers_tensorrt.so", "libonnxruntime_providers_tensorrt.so", 859144,
				"98f92df0c1790b6f7aea78c535f642c745abd5e2af8420782d02cbd21f2aa3eb"},
			{"ThirdPartyNotices.txt", "ThirdPartyNotices.txt", 343249,
				"4c5b864d8974c94b37461f38163facef79a1bb5dea461667ee9e5be6a8e73f83"},
		},
	}
}
