// Command release builds the archives of a release, and the documents of the images: licence texts, a report of licences
// and a software bill of materials (SBOM) in CycloneDX's JSON. `make release` runs it in the root of the repository.
//
//	release archives [-version V] [-arch amd64,arm64] [-out DIR]
//	release documents -program FILE [-cpu DIR] [-cuda DIR] [-openvino DIR] DIR
//
// The archives contain the program, the pinned ONNX Runtime with verified digests, manual pages, completions of shells and
// the documents. Two builds of one commit have equal bytes: the program is built in a fresh clone without paths of the
// machine, and archives have sorted names, the time of the commit, and no owners.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"ddiff/restore/onnx/install"
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
	if len(args) == 0 {
		return errors.New("name a command: archives or documents")
	}
	switch args[0] {
	case "archives":
		f := flag.NewFlagSet("archives", flag.ExitOnError)
		version := f.String("version", "", "version of a commit without a tag")
		arch := f.String("arch", "amd64,arm64", "architectures, separated by commas")
		out := f.String("out", "bin/release", "directory of the archives")
		if err := f.Parse(args[1:]); err != nil {
			return err
		}
		return buildArchives(ctx, *version, strings.Split(*arch, ","), *out)
	case "documents":
		f := flag.NewFlagSet("documents", flag.ExitOnError)
		program := f.String("program", "", "the program")
		dirs := map[string]*string{}
		for _, ep := range providers() {
			dirs[ep] = f.String(ep, "", "directory of the installed release for "+ep)
		}
		if err := f.Parse(args[1:]); err != nil {
			return err
		}
		if *program == "" || f.NArg() != 1 {
			return errors.New("documents: give -program and one directory")
		}
		d := documents{program: *program, arch: runtime.GOARCH, runner: *program, runtimes: map[string]string{}}
		for ep, dir := range dirs {
			if *dir != "" {
				d.runtimes[ep] = *dir
			}
		}
		return d.write(ctx, ".", f.Arg(0))
	}
	return fmt.Errorf("unknown command %q: use archives or documents", args[0])
}

// providers returns the releases of ONNX Runtime that a distribution may contain.
func providers() []string { return []string{install.CPU, install.CUDA, install.OpenVINO} }
