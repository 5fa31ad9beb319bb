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
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ddiff/restore/onnx/install"
)

// The documents of a distribution.
const (
	billName   = "ddiff.cdx.json"
	reportName = "THIRD_PARTY.md"
	textsName  = "licenses"
	priorName  = "prior.md"
)

// runtimeLicence is the licence of ONNX Runtime and of its OpenVINO plugin. Not every package of them has the text.
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

// write writes the documents to dir, which must exist. Source is the source tree of the program.
func (d documents) write(ctx context.Context, source, dir string) error {
	info, err := buildinfo.ReadFile(d.program)
	if err != nil {
		return fmt.Errorf("read the modules of %s: %w", d.program, err)
	}
	modules, err := collectLicences(ctx, source, d.arch)
	if err != nil {
		return err
	}
	linked := map[string]string{"std": strings.TrimPrefix(info.GoVersion, "go")}
	for _, m := range info.Deps {
		linked[m.Path] = m.Version
	}
	for _, c := range modules {
		if linked[c.name] != c.version {
			return fmt.Errorf("the source has %s %s, the program %q; build it from this source", c.name, c.version, linked[c.name])
		}
		delete(linked, c.name)
	}
	if len(linked) > 0 {
		return fmt.Errorf("no package of these modules of the program was found: %v", slices.Sorted(maps.Keys(linked)))
	}
	builds, err := d.builds(ctx)
	if err != nil {
		return err
	}
	model, err := readModel(ctx, d.runner)
	if err != nil {
		return err
	}
	version, err := readVersion(ctx, d.runner)
	if err != nil {
		return err
	}
	for _, c := range modules {
		if err := c.writeTexts(filepath.Join(dir, textsName)); err != nil {
			return err
		}
	}
	if err := d.writeNotices(source, filepath.Join(dir, textsName), builds); err != nil {
		return err
	}
	b := bill{program: d.program, version: version.Version, info: info, modules: modules, builds: builds, model: model, arch: d.arch}
	if err := b.write(filepath.Join(dir, billName)); err != nil {
		return err
	}
	// The prior has photographs under CC-BY-4.0, which demands the names of their authors.
	if err := place(filepath.Join(source, "docs", priorName), filepath.Join(dir, priorName)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, reportName), []byte(report(modules, builds, model)), 0o644)
}

// builds verifies the releases of ONNX Runtime and returns them in the order of providers.
func (d documents) builds(ctx context.Context) ([]install.Build, error) {
	var all []install.Build
	for _, ep := range providers() {
		if dir := d.runtimes[ep]; dir != "" {
			build, err := install.Verify(ctx, dir, ep, "linux", d.arch)
			if err != nil {
				return nil, fmt.Errorf("verify %s: %w", dir, err)
			}
			all = append(all, build)
		}
	}
	return all, nil
}

// writeNotices writes the licence of each release of ONNX Runtime and the notices that it has. A release without notices,
// such as that of npm, is an error.
func (d documents) writeNotices(source, dir string, builds []install.Build) error {
	for _, b := range builds {
		to := filepath.Join(dir, runtimeName(b)+"@"+b.Version)
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, "LICENSE"), []byte(runtimeLicence), 0o644); err != nil {
			return err
		}
		notices := "ThirdPartyNotices.txt"
		if b.EP == install.OpenVINO {
			notices = "third-party-programs.txt"
			// OpenVINO and oneTBB have the licence of ddiff.
			if err := place(filepath.Join(source, "LICENSE"), filepath.Join(to, "LICENSE-Apache-2.0")); err != nil {
				return err
			}
		}
		if !slices.ContainsFunc(b.Files, func(f install.File) bool { return f.Name == notices }) {
			return fmt.Errorf("%s has no %s; install the release with another client", b.Archive, notices)
		}
		if err := place(filepath.Join(d.runtimes[b.EP], notices), filepath.Join(to, notices)); err != nil {
			return err
		}
	}
	return nil
}

// runtimeName names a release of ONNX Runtime in the documents.
func runtimeName(b install.Build) string {
	if b.EP == install.OpenVINO {
		return "onnxruntime-ep-openvino"
	}
	return "onnxruntime"
}

// model is the prior inside the program.
type model struct {
	SHA256 string
	Card   struct{ Name, License string }
}

// readModel asks the program for its prior.
func readModel(ctx context.Context, program string) (model, error) {
	text, err := output(ctx, ".", program, "prior", "inspect", "bundled", "--json")
	if err != nil {
		return model{}, err
	}
	var m model
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return model{}, fmt.Errorf("read the description of the prior: %w", err)
	}
	if sum, err := hex.DecodeString(m.SHA256); err != nil || len(sum) != sha256.Size || m.Card.License == "" {
		return model{}, fmt.Errorf("the prior has the digest %q and the licence %q", m.SHA256, m.Card.License)
	}
	return m, nil
}

// report returns the report of licences.
func report(modules []component, builds []install.Build, m model) string {
	var b strings.Builder
	b.WriteString("# Third-party software\n\nddiff has the licence Apache-2.0 (LICENSE). It contains the following parts, of which " + textsName +
		"/ has the licence\ntexts and notices. The source of each part is at its address, unchanged.\n\n" +
		"| part | version | licence | source |\n|---|---|---|---|\n")
	for _, c := range modules {
		name := c.name
		if name == "std" {
			name = "Go runtime and standard library"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | <%s> |\n", name, c.version, strings.Join(c.ids, ", "), c.address)
	}
	for _, r := range builds {
		text := "MIT, and those of ThirdPartyNotices.txt"
		if r.EP == install.OpenVINO {
			text = "MIT, Apache-2.0 (OpenVINO, oneTBB), and those of third-party-programs.txt"
		}
		fmt.Fprintf(&b, "| %s, %s | %s | %s | <%s> |\n", runtimeName(r), r.Archive, r.Version, text, runtimeSource(r))
	}
	fmt.Fprintf(&b, "\nThe prior inside the program (SHA-256 %s): %s; %s names the authors of its images.\n", m.SHA256, m.Card.License, priorName)
	return b.String()
}

// runtimeSource returns the address of the source of a release.
func runtimeSource(b install.Build) string {
	if b.EP == install.OpenVINO {
		return "https://github.com/intel/onnxruntime"
	}
	return "https://github.com/microsoft/onnxruntime/tree/v" + b.Version
}
