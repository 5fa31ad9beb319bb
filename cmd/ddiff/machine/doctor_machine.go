package machine

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"ddiff/internal/cli"
)

// keyedLine returns the rest of the first line of a file that begins with a key.
func keyedLine(path, key string) (string, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", false
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), key); ok {
			return rest, true
		}
	}
	return "", false
}

func memoryMiB(key string) int {
	value, _ := keyedLine("/proc/meminfo", key)
	kib, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
	if err != nil {
		return 0
	}
	return kib / 1024
}

func systemFindings() []finding {
	system, processor := runtime.GOOS+"/"+runtime.GOARCH, "unknown processor"
	if name, ok := keyedLine("/etc/os-release", "PRETTY_NAME="); ok {
		system += ", " + strings.Trim(name, `"`)
	}
	if kernel, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		system += ", kernel " + strings.TrimSpace(string(kernel))
	}
	if model, ok := keyedLine("/proc/cpuinfo", "model name"); ok {
		processor = strings.TrimLeft(model, "\t :")
	}
	out := []finding{
		found("ddiff", "%s, %s", cli.Version(), runtime.Version()),
		found("system", "%s", system),
		found("processor", "%s, %d cores, Go uses %d", processor, runtime.NumCPU(), runtime.GOMAXPROCS(0)),
	}
	detail := strconv.Itoa(memoryMiB("MemTotal:")) + " MiB, " + strconv.Itoa(memoryMiB("MemAvailable:")) + " MiB available"
	if limit, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil && strings.TrimSpace(string(limit)) != "max" {
		if bytes, err := strconv.ParseInt(strings.TrimSpace(string(limit)), 10, 64); err == nil {
			detail += ", limited to " + strconv.FormatInt(bytes>>20, 10) + " MiB"
		}
	}
	return append(out, found("memory", "%s", detail))
}

// vulkanFindings checks the prerequisites of the WebGPU provider on Linux: the loader and the manifest of a driver.
func vulkanFindings() []finding {
	if runtime.GOOS != "linux" {
		return nil
	}
	const remedy = "only for --device webgpu: install libvulkan1 and the GPU's Vulkan driver " +
		"(without a GPU: install chromium-common and set VK_ICD_FILENAMES to its vk_swiftshader_icd.json)"
	loader := firstFile(append(filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")),
		"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"), "libvulkan.so.1")
	if loader == "" {
		return []finding{missing("Vulkan", "no libvulkan.so.1", remedy)}
	}
	var drivers []string
	for _, variable := range []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES"} {
		for _, file := range filepath.SplitList(os.Getenv(variable)) {
			if _, err := os.Stat(file); err == nil {
				drivers = append(drivers, file)
			}
		}
	}
	for _, pattern := range []string{"/etc/vulkan/icd.d/*.json", "/usr/share/vulkan/icd.d/*.json"} {
		files, err := filepath.Glob(pattern)
		if err == nil {
			drivers = append(drivers, files...)
		}
	}
	if len(drivers) == 0 {
		return []finding{missing("Vulkan", loader+", but no manifest of a driver", remedy)}
	}
	return []finding{found("Vulkan", "%s; drivers: %s", loader, strings.Join(drivers, ", "))}
}

func firstFile(dirs []string, name string) string {
	for _, dir := range dirs {
		if path := filepath.Join(dir, name); dir != "" {
			if _, err := os.Stat(path); err == nil {
				return path
			}
		}
	}
	return ""
}

// directoryFindings checks the directories to which the program writes.
func directoryFindings() []finding {
	var out []finding
	cache, err := os.UserCacheDir()
	if err != nil {
		out = append(out, missing("cache", err.Error(), "set XDG_CACHE_HOME to a writable directory"))
	} else {
		out = append(out, directory("cache", filepath.Join(cache, "ddiff"), "set XDG_CACHE_HOME to a writable directory"))
	}
	out = append(out, directory("temporary files", os.TempDir(), "set TMPDIR to a writable directory"))
	if here, err := os.Getwd(); err == nil {
		out = append(out, directory("working directory", here, "only for outputs with a relative path: set --out to a writable directory"))
	}
	return out
}

// directory checks that a directory, or its nearest existing parent, is writable, and reports the free space.
func directory(name, dir, remedy string) finding {
	existing := dir
	for {
		if _, err := os.Stat(existing); err == nil || existing == filepath.Dir(existing) {
			break
		}
		existing = filepath.Dir(existing)
	}
	file, err := os.CreateTemp(existing, ".ddiff-doctor-")
	if err != nil {
		return missing(name, dir+" is not writable", remedy)
	}
	file.Close()
	if err := os.Remove(file.Name()); err != nil {
		return missing(name, err.Error(), remedy)
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(existing, &fs); err != nil {
		return found(name, "%s", dir)
	}
	const gib = 1 << 30
	return found(name, "%s, %.1f GiB free", dir, float64(fs.Bavail)*float64(fs.Bsize)/gib)
}
