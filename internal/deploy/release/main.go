// Command release writes the parts of a distribution that the Go tool does not build: scripts/release.sh makes archives with
// them, scripts/image.sh images. It runs in the root of the source tree.
//
//	release library -arch ARCH DIR
//	release documents -program FILE [-arch ARCH -runner FILE] [-cpu DIR] [-cuda DIR] [-openvino DIR] DIR
//
// The first command copies the pinned ONNX Runtime for CPUs, with verified digests. The second one writes licence texts, a report of
// licences and a software bill of materials (SBOM) in CycloneDX's JSON. A new kind of document belongs to documents.write.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"ddiff/internal/restore/onnx/install"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 || args[0] != "library" && args[0] != "documents" {
		return errors.New("name a command: library or documents")
	}
	f := flag.NewFlagSet(args[0], flag.ExitOnError)
	d := documents{runtimes: map[string]string{}}
	f.StringVar(&d.arch, "arch", runtime.GOARCH, "architecture of the program")
	f.StringVar(&d.program, "program", "", "the program")
	f.StringVar(&d.runner, "runner", "", "the same program for this machine (default the program)")
	for _, ep := range providers() {
		f.Func(ep, "directory of the installed release for "+ep, func(dir string) error { d.runtimes[ep] = dir; return nil })
	}
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	if f.NArg() != 1 || args[0] == "documents" && d.program == "" {
		return fmt.Errorf("%s: give one directory, and -program for documents", args[0])
	}
	if args[0] == "library" {
		return fetchLibrary(ctx, d.arch, f.Arg(0))
	}
	if d.runner == "" {
		d.runner = d.program
	}
	return d.write(ctx, ".", f.Arg(0))
}

// providers returns the releases of ONNX Runtime that a distribution may contain.
func providers() []string { return []string{install.CPU, install.CUDA, install.OpenVINO} }

// fetchLibrary installs the pinned ONNX Runtime for an architecture in dir. The wheel has the licence and notices of its
// library; the npm package has none.
func fetchLibrary(ctx context.Context, arch, dir string) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	lib, err := install.Install(ctx, install.Options{
		EP: install.CPU, Client: install.ClientPip, OS: "linux", Arch: arch, CacheDir: filepath.Join(cache, "ddiff", "release", arch),
	})
	if err != nil {
		return err
	}
	from := filepath.Dir(lib.Path)
	build, err := install.Verify(from, install.CPU, "linux", arch)
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
