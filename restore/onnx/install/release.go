package install

import (
	"fmt"
	"path/filepath"
)

// release is one pinned build.
type release struct {
	version string
	ep      string
	// sources are the archives with the build, in the order in which their clients are tried.
	sources []source
}

// source is one archive of a release and the client that downloads it. The files of two sources may differ, because the
// project builds each package on its own.
type source struct {
	name    string // of the client, a Client constant
	client  client
	archive archive
	// members are the files to install; the first is the library to load.
	members []member
}

// archive is a published file.
type archive struct {
	name   string // file name, as the client writes it
	size   int64  // bytes
	digest string // as registries publish it: "sha256:" with hexadecimal, or "sha512:" with base64
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

// library returns the library that s installed in the directory of the release.
func (r release) library(s source, directory, origin string) Library {
	return Library{
		Path:    filepath.Join(directory, s.members[0].name),
		EP:      r.ep,
		Source:  origin,
		Version: r.version,
	}
}

// archives returns the archives of sources.
func archives(sources []source) []archive {
	var all []archive
	for _, s := range sources {
		all = append(all, s.archive)
	}
	return all
}

// releaseFor returns the pinned release of an execution provider for a platform.
func releaseFor(ep, goos, goarch string) (release, error) {
	switch ep {
	case CPU:
		if sources := cpuSources(goos, goarch); sources != nil {
			return release{version: cpuVersion, ep: CPU, sources: sources}, nil
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

// cudaRelease is the build with CUDA 12, from the Maven artifact.
func cudaRelease() release {
	const native = "ai/onnxruntime/native/linux-x64/"
	return release{
		version: "1.29.0",
		ep:      CUDA,
		sources: []source{{
			name:   ClientMaven,
			client: maven("com.microsoft.onnxruntime:onnxruntime_gpu:1.29.0:jar"),
			archive: archive{
				name:   "onnxruntime_gpu-1.29.0.jar",
				size:   642295340,
				digest: "sha512:xOUzD4B05cmuKJ7RXgu/2jvLxqH5r0MDwSHeu+r+Aj4r/HtzRcQ+qJ1ZfyAJLr/wdkhhm3/xYIrWi8rQeHuvQw==",
				format: zipped,
			},
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
		}},
	}
}
