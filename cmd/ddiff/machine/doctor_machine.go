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
