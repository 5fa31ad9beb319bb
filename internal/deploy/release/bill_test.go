package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"ddiff/internal/restore/onnx/install"
)

// The SBOM follows the schema of CycloneDX, names modules, files and digests, and is the same for the same program.
func TestBill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "ddiff")
	if err := os.WriteFile(program, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	sum := strings.Repeat("ab", 32)
	b := bill{
		program: program, version: "1.2.3", arch: "amd64",
		info: &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.revision", Value: "0123"}}},
		modules: []component{
			{name: "example.org/module", version: "v1.0.0", ids: []string{"Apache-2.0", "MIT"}}, {name: "std", version: "1.26.0", ids: []string{"BSD-3-Clause"}},
		},
		builds: []install.Build{
			{
				EP: install.CPU, Version: "1.30.0", Client: install.ClientPip, Archive: "onnxruntime.whl", Digest: "sha256:" + sum,
				Files: []install.File{{Name: "libonnxruntime.so.1", Size: 1, SHA256: sum}},
			},
			{
				EP: install.OpenVINO, Version: "2026.4.1", Client: install.ClientPip, Archive: "openvino.whl", Digest: "sha512:" + strings.Repeat("QUJD", 21) + "QQ==",
				Files: []install.File{{Name: "libopenvino_c.so", Size: 1, SHA256: sum}},
			},
		},
	}
	for _, file := range []string{"prior.onnx", "base.onnx"} {
		m := model{file: file, SHA256: sum}
		m.Card.License = "CC-BY-4.0"
		b.models = append(b.models, m)
	}
	var written [][]byte
	for _, name := range []string{"a.json", "b.json"} {
		if err := b.write(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		written = append(written, text)
	}
	if !bytes.Equal(written[0], written[1]) {
		t.Error("two bills of one program differ")
	}
	for _, want := range []string{
		`"pkg:golang/example.org/module@v1.0.0"`, `"pkg:pypi/onnxruntime@1.30.0"`, `"pkg:pypi/openvino@2026.4.1"`, `"libonnxruntime.so.1"`, `"prior.onnx"`, `"base.onnx"`, `"2026-01-02T03:04:05Z"`,
	} {
		if !bytes.Contains(written[0], []byte(want)) {
			t.Errorf("the SBOM lacks %s\n%s", want, written[0])
		}
	}
	schema := billSchema(t)
	validate := func(text []byte) error {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(value)
	}
	if err := validate(written[0]); err != nil {
		t.Error(err)
	}
	if err := validate(bytes.ReplaceAll(written[0], []byte(`"SHA-256"`), []byte(`"SHA-257"`))); err == nil {
		t.Error("the schema accepts an unknown digest")
	}
}

// billSchema compiles the schema in the module of the library.
func billSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	for name, address := range map[string]string{
		"bom-1.6.schema.json": "http://cyclonedx.org/schema/bom-1.6.schema.json", "spdx.schema.json": "http://cyclonedx.org/schema/spdx.schema.json",
		"jsf-0.82.schemax.json": "http://cyclonedx.org/schema/jsf-0.82.schema.json",
	} {
		f, err := os.Open(filepath.Join(strings.TrimSpace(string(dir)), "schema", name))
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(f)
		if err == nil {
			err = f.Close()
		}
		if err == nil {
			err = compiler.AddResource(address, value)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	schema, err := compiler.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}
