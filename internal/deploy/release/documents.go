package main

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"ddiff/internal/restore/onnx/install"
)

// runtimeLicence is the licence of ONNX Runtime. Not every package of it has the text.
//
//go:embed onnxruntime.txt
var runtimeLicence string

// documents are the licence texts, the report and the SBOM of a program with the releases of ONNX Runtime beside it.
type documents struct {
	program  string            // file
	arch     string            // of the program
	runner   string            // the same program for this machine
	runtimes map[string]string // directories of the releases by execution provider
}

// write writes the documents to dir. Source is the source tree of the program.
func (d documents) write(ctx context.Context, source, dir string) error {
	b := bill{program: d.program, arch: d.arch}
	var err error
	if b.info, err = buildinfo.ReadFile(d.program); err != nil {
		return fmt.Errorf("read the modules of %s: %w", d.program, err)
	}
	if b.modules, err = collectLicences(ctx, source, d.arch); err != nil {
		return err
	}
	linked := map[string]string{"std": strings.TrimPrefix(b.info.GoVersion, "go")}
	for _, m := range b.info.Deps {
		linked[m.Path] = m.Version
	}
	found := map[string]string{}
	texts := filepath.Join(dir, "licenses")
	for _, c := range b.modules {
		found[c.name] = c.version
		if err := c.writeTexts(texts); err != nil {
			return err
		}
	}
	if !maps.Equal(linked, found) {
		return fmt.Errorf("the source has the modules %v, the program %v; build it from this source", found, linked)
	}
	for _, ep := range providers() {
		if d.runtimes[ep] == "" {
			continue
		}
		build, err := install.Verify(d.runtimes[ep], ep, "linux", d.arch)
		if err == nil {
			err = d.writeNotices(filepath.Join(texts, runtimeName(build)+"@"+build.Version), build)
		}
		if err != nil {
			return fmt.Errorf("release of ONNX Runtime in %s: %w", d.runtimes[ep], err)
		}
		b.builds = append(b.builds, build)
	}
	for _, m := range []model{{file: "prior.onnx", name: "bundled"}, {file: "base.onnx", name: filepath.Join(source, "priors/base.onnx")}} {
		if err := d.ask(ctx, &m, "prior", "inspect", m.name, "--json"); err != nil {
			return err
		}
		if sum, err := hex.DecodeString(m.SHA256); err != nil || len(sum) != sha256.Size || m.Card.License == "" {
			return fmt.Errorf("the prior %s has the digest %q and the licence %q", m.name, m.SHA256, m.Card.License)
		}
		b.models = append(b.models, m)
	}
	var version struct{ Version string }
	if err := d.ask(ctx, &version, "version", "--json"); err != nil {
		return err
	}
	b.version = version.Version
	if err := b.write(filepath.Join(dir, "ddiff.cdx.json")); err != nil {
		return err
	}
	// The training of the priors had photographs under CC-BY-4.0, which demands the names of their authors.
	if err := place(filepath.Join(source, "docs/prior.md"), filepath.Join(dir, "prior.md")); err != nil {
		return err
	}
	return put(filepath.Join(dir, "THIRD_PARTY.md"), b.report())
}

// ask reads the JSON that the program prints for the arguments.
func (d documents) ask(ctx context.Context, to any, args ...string) error {
	text, err := exec.CommandContext(ctx, d.runner, args...).Output()
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		return fmt.Errorf("run %s %v: %w", d.runner, args, err)
	}
	return nil
}

// writeNotices writes the licence of a release of ONNX Runtime or OpenVINO and the notices that it has. A release without notices,
// such as that of npm, is an error.
func (d documents) writeNotices(dir string, b install.Build) error {
	if !slices.ContainsFunc(b.Files, func(f install.File) bool { return filepath.Ext(f.Name) == ".txt" }) {
		return fmt.Errorf("%s has no notices; install the release with another client", b.Archive)
	}
	licence := false
	for _, f := range b.Files {
		if f.Name == "LICENSE" || filepath.Ext(f.Name) == ".txt" {
			licence = licence || f.Name == "LICENSE"
			if err := place(filepath.Join(d.runtimes[b.EP], f.Name), filepath.Join(dir, f.Name)); err != nil {
				return err
			}
		}
	}
	if !licence {
		return put(filepath.Join(dir, "LICENSE"), runtimeLicence)
	}
	return nil
}

// runtimeName names a release of ONNX Runtime in the documents.
func runtimeName(b install.Build) string {
	switch {
	case b.EP == install.OpenVINO:
		return install.OpenVINO
	case b.EP == install.CUDA && b.Client == install.ClientPip:
		return "onnxruntime-gpu"
	}
	return "onnxruntime"
}

// model is the prior inside the program, or the one beside it.
type model struct {
	file, name string // name is the program's, or a path
	SHA256     string
	Card       struct{ License string }
}

// report returns the report of licences.
func (b bill) report() string {
	var out strings.Builder
	out.WriteString("# Third-party software\n\nddiff has the licence Apache-2.0 (LICENSE). It contains the following parts, of which licenses/ has the licence\n" +
		"texts and notices. The source of each part is at its address, unchanged.\n\n" +
		"| part | version | licence | source |\n|---|---|---|---|\n")
	for _, c := range b.modules {
		name, address := c.name, "https://pkg.go.dev/"+c.name+"@"+c.version
		if name == "std" {
			name, address = "Go runtime and standard library", "https://go.dev/dl/"
		}
		fmt.Fprintf(&out, "| %s | %s | %s | <%s> |\n", name, c.version, strings.Join(c.ids, ", "), address)
	}
	for _, r := range b.builds {
		text, address := "MIT, and those of ThirdPartyNotices.txt", "https://github.com/microsoft/onnxruntime/tree/v"+r.Version
		if r.EP == install.OpenVINO {
			text, address = "Apache-2.0, and those of the files *third-party-programs.txt", "https://github.com/openvinotoolkit/openvino/tree/"+r.Version
		}
		fmt.Fprintf(&out, "| %s, %s | %s | %s | <%s> |\n", runtimeName(r), r.Archive, r.Version, text, address)
	}
	for _, m := range b.models {
		fmt.Fprintf(&out, "\nThe prior %s (SHA-256 %s): %s; prior.md names the authors of its images.\n", m.file, m.SHA256, m.Card.License)
	}
	return out.String()
}
