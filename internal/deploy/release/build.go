package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"ddiff/restore/onnx/install"
)

// compiler returns the C compiler for an architecture, as Debian names it, or "".
func compiler(arch string) string {
	if arch == runtime.GOARCH {
		return "gcc"
	}
	return map[string]string{"amd64": "x86_64-linux-gnu-gcc", "arm64": "aarch64-linux-gnu-gcc"}[arch]
}

// buildArchives builds the archives of the checkout in the current directory.
func buildArchives(ctx context.Context, given string, archs []string, out string) error {
	c, err := readCommit(ctx, ".")
	if err != nil {
		return err
	}
	version, err := c.version(given)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "ddiff-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work) //nolint:errcheck // the system clears its temporary files
	// The Go tool records the tag of a clone, but not that of a linked work tree; and a clone has no ignored files.
	source := filepath.Join(work, "source")
	if _, err := output(ctx, ".", "git", "clone", "--quiet", ".", source); err != nil {
		return err
	}
	if _, err := output(ctx, source, "git", "checkout", "--quiet", "--detach", c.hash); err != nil {
		return err
	}
	runner := filepath.Join(work, "runner") // on this machine, for manual pages and completions
	if err := buildProgram(ctx, source, runner, runtime.GOARCH); err != nil {
		return err
	}
	if err := checkVersion(ctx, runner, c, version); err != nil {
		return err
	}
	if err := emptyFolder(out); err != nil {
		return err
	}
	var names []string
	for _, arch := range archs {
		b := archiveBuild{commit: c, version: version, arch: arch, source: source, runner: runner, out: out}
		written, err := b.write(ctx, filepath.Join(work, arch))
		if err != nil {
			return fmt.Errorf("build the archive for %s: %w", arch, err)
		}
		names = append(names, written...)
	}
	slices.Sort(names)
	if err := writeSums(out, names); err != nil {
		return err
	}
	fmt.Printf("version=%s commit=%.12s archives=%d dir=%s\n", version, c.hash, len(archs), out)
	return nil
}

// emptyFolder creates the folder of a release, or removes the files of an earlier one from it.
func emptyFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(dir, "ddiff-*-linux-*"))
	if err != nil {
		return err
	}
	for _, file := range append(old, filepath.Join(dir, "SHA256SUMS")) {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// buildProgram builds the program of the source tree for an architecture.
func buildProgram(ctx context.Context, source, program, arch string) error {
	cc := compiler(arch)
	if cc == "" {
		return fmt.Errorf("there is no release for %s; use amd64 or arm64", arch)
	}
	_, err := outputWith(ctx, source, []string{
		"CGO_ENABLED=1", "GOOS=linux", "GOARCH=" + arch, "CC=" + cc, "GOFLAGS=-mod=readonly", "GOAMD64=v1", "GOARM64=v8.0",
		"GOWORK=off", "CGO_CFLAGS=-O2", "CGO_LDFLAGS=",
	}, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w -buildid=", "-o", program, "./cmd/ddiff")
	return err
}

// programVersion is what a program prints about its origin.
type programVersion struct{ Version, Tag, Commit string }

// readVersion asks a program for its origin.
func readVersion(ctx context.Context, program string) (v programVersion, err error) {
	text, err := output(ctx, ".", program, "version", "--json")
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return v, fmt.Errorf("read the program's version: %w", err)
	}
	return v, nil
}

// checkVersion checks that the program prints the version of its tag.
func checkVersion(ctx context.Context, program string, c commit, version string) error {
	v, err := readVersion(ctx, program)
	if err != nil {
		return err
	}
	if v.Commit != c.hash || v.Tag != c.tag || c.tag != "" && v.Version != version {
		return fmt.Errorf("the tag is %q of commit %s, but the program prints version %s, tag %q, commit %s; correct release in internal/cli/version.go",
			c.tag, c.hash, v.Version, v.Tag, v.Commit)
	}
	return nil
}

// archiveBuild builds the archive of one architecture.
type archiveBuild struct {
	commit
	version, arch, source, runner, out string
}

// write collects the files of the archive in dir and writes the archive and its SBOM. It returns their names.
func (b archiveBuild) write(ctx context.Context, dir string) ([]string, error) {
	stem := fmt.Sprintf("ddiff-%s-linux-%s", b.version, b.arch)
	program := filepath.Join(dir, "bin", "ddiff")
	library, documentation := filepath.Join(dir, "lib", "ddiff"), filepath.Join(dir, "share", "doc", "ddiff")
	for _, d := range []string{filepath.Dir(program), library, documentation} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	if err := buildProgram(ctx, b.source, program, b.arch); err != nil {
		return nil, err
	}
	if err := fetchLibrary(ctx, b.arch, library); err != nil {
		return nil, err
	}
	if err := b.writeManual(ctx, dir); err != nil {
		return nil, err
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		if err := place(filepath.Join(b.source, name), filepath.Join(documentation, name)); err != nil {
			return nil, err
		}
	}
	d := documents{program: program, arch: b.arch, runner: b.runner, runtimes: map[string]string{install.CPU: library}}
	if err := d.write(ctx, b.source, documentation); err != nil {
		return nil, err
	}
	bill, err := os.ReadFile(filepath.Join(documentation, billName))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(b.out, stem+".cdx.json"), bill, 0o644); err != nil {
		return nil, err
	}
	return []string{stem + ".tar.gz", stem + ".cdx.json"},
		writeArchive(filepath.Join(b.out, stem+".tar.gz"), dir, stem, b.time)
}

// fetchLibrary installs the pinned ONNX Runtime for an architecture in dir. The wheel has the licence and notices of its
// library; the npm package has none.
func fetchLibrary(ctx context.Context, arch, dir string) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	lib, err := install.Install(ctx, install.Options{
		EP: install.CPU, Client: install.ClientPip, OS: "linux", Arch: arch,
		CacheDir: filepath.Join(cache, "ddiff", "release", arch),
	})
	if err != nil {
		return err
	}
	from := filepath.Dir(lib.Path)
	build, err := install.Verify(ctx, from, install.CPU, "linux", arch)
	if err != nil {
		return err
	}
	if build.Client != install.ClientPip {
		return fmt.Errorf("%s is from %s; remove it", from, build.Client)
	}
	for _, f := range build.Files {
		if err := place(filepath.Join(from, f.Name), filepath.Join(dir, f.Name)); err != nil {
			return err
		}
	}
	return nil
}

// writeManual writes the manual pages and the completions of shells.
func (b archiveBuild) writeManual(ctx context.Context, dir string) error {
	pages := filepath.Join(dir, "share", "man", "man1")
	if err := os.MkdirAll(pages, 0o755); err != nil {
		return err
	}
	if _, err := output(ctx, ".", b.runner, "man", pages); err != nil {
		return err
	}
	var errs []error
	for shell, file := range map[string]string{
		"bash": "share/bash-completion/completions/ddiff", "zsh": "share/zsh/site-functions/_ddiff",
		"fish": "share/fish/vendor_completions.d/ddiff.fish",
	} {
		script, err := output(ctx, ".", b.runner, "completion", shell)
		if err == nil {
			file = filepath.Join(dir, filepath.FromSlash(file))
			err = os.MkdirAll(filepath.Dir(file), 0o755)
		}
		if err == nil {
			err = os.WriteFile(file, []byte(strings.TrimRight(script, "\n")+"\n"), 0o644)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
