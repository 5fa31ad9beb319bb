package install

import (
	"bufio"
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	// providersShared is loaded by ONNX Runtime, by its full path, before any provider.
	providersShared = "libonnxruntime_providers_shared.so"
	// cuDNN is loaded by the CUDA provider for the first convolution; it is not among the ELF dependencies.
	cuDNN = "libcudnn.so.9"
)

// CUDALoadable checks that this machine has all dependencies of lib's CUDA provider. It reads files and the loader's
// cache and loads nothing, so it does not check for a working GPU. Errors are [*MissingLibrariesError], and
// [ErrUnsupported] if lib has no CUDA provider.
func CUDALoadable(lib Library) error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("CUDA on %s: %w", runtime.GOOS, ErrUnsupported)
	}
	provider := cudaProvider(lib.Path)
	if _, err := os.Stat(provider); err != nil {
		return fmt.Errorf("%s has no CUDA provider beside it: %w", lib.Path, ErrUnsupported)
	}
	resolver := loader{
		path:  filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")),
		cache: loaderCache(),
		usual: []string{"/lib64", "/usr/lib64", "/lib", "/usr/lib"},
	}
	missing, err := resolver.missing(provider, cuDNN)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(provider), providersShared)); err != nil {
		missing = append(missing, providersShared)
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return &MissingLibrariesError{Provider: provider, Missing: missing}
	}
	return nil
}

// loader finds shared libraries as the dynamic loader does.
type loader struct {
	path  []string            // of LD_LIBRARY_PATH
	cache map[string][]string // of ldconfig: name to files of any architecture
	usual []string            // directories to search last
}

// missing returns the names of missing direct and indirect dependencies of the library at path. also names libraries
// that it loads at run time.
func (l loader) missing(path string, also ...string) ([]string, error) {
	first, err := readDependencies(path)
	if err != nil {
		return nil, err
	}
	first.needed = append(first.needed, also...)

	seen := make(map[string]bool)
	var missing []string
	for queue := []dependencies{first}; len(queue) > 0; queue = queue[1:] {
		object := queue[0]
		for _, name := range object.needed {
			if seen[name] {
				continue
			}
			seen[name] = true
			if found, ok := l.find(name, object, first.machine); ok {
				queue = append(queue, found)
			} else {
				missing = append(missing, name)
			}
		}
	}
	return missing, nil
}

// find returns the dependencies of the library to which name resolves for object.
func (l loader) find(name string, object dependencies, machine elf.Machine) (dependencies, bool) {
	var candidates []string
	add := func(dirs []string) {
		for _, dir := range dirs {
			candidates = append(candidates, filepath.Join(dir, name))
		}
	}
	add(object.search)
	add(l.path)
	candidates = append(candidates, l.cache[name]...)
	add(l.usual)
	for _, candidate := range candidates {
		found, err := readDependencies(candidate)
		if err == nil && found.machine == machine {
			return found, true
		}
	}
	return dependencies{}, false
}

// dependencies are the dependencies of one shared library.
type dependencies struct {
	machine elf.Machine
	needed  []string // names such as libm.so.6
	search  []string // directories from RPATH and RUNPATH
}

func readDependencies(path string) (dependencies, error) {
	file, err := openELF(path)
	if err != nil {
		return dependencies{}, fmt.Errorf("read %s: %w", path, err)
	}
	defer file.Close() //nolint:errcheck // opened for reading
	d := dependencies{machine: file.Machine}
	if d.needed, err = file.ImportedLibraries(); err != nil {
		return dependencies{}, fmt.Errorf("read the dependencies of %s: %w", path, err)
	}
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		values, err := file.DynString(tag)
		if err != nil {
			return dependencies{}, fmt.Errorf("read the dependencies of %s: %w", path, err)
		}
		origin := strings.NewReplacer("$ORIGIN", filepath.Dir(path), "${ORIGIN}", filepath.Dir(path))
		for _, value := range values {
			d.search = append(d.search, filepath.SplitList(origin.Replace(value))...)
		}
	}
	return d, nil
}

// loaderCache returns the cache of ldconfig, or nil on a machine without ldconfig.
func loaderCache() map[string][]string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, program := range []string{"ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig"} {
		if output, err := exec.CommandContext(ctx, program, "-p").Output(); err == nil {
			return parseLoaderCache(output)
		}
	}
	return nil
}

// parseLoaderCache parses lines such as "	libm.so.6 (libc6,x86-64) => /lib/libm.so.6" and skips others, such as the
// heading.
func parseLoaderCache(output []byte) map[string][]string {
	cache := make(map[string][]string)
	lines := bufio.NewScanner(bytes.NewReader(output))
	for lines.Scan() {
		left, file, ok := strings.Cut(lines.Text(), " => ")
		name, _, described := strings.Cut(strings.TrimSpace(left), " (")
		if ok && described && name != "" {
			cache[name] = append(cache[name], strings.TrimSpace(file))
		}
	}
	return cache
}
