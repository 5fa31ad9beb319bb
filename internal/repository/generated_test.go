package repository

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// Each go.mod and go.sum lists the imports of its module and nothing else.
func TestModulesAreTidy(t *testing.T) {
	t.Parallel()
	for _, name := range tracked(t, "go.mod", "*/go.mod") {
		cmd := exec.CommandContext(t.Context(), "go", "mod", "tidy", "-diff")
		cmd.Dir = filepath.Join(root, filepath.Dir(name))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s or its go.sum is not tidy (%v); run go mod tidy in its directory\n%.2000s", name, err, out)
		}
	}
}

// protocVersion matches the comment with the version of protoc, which does not affect the code.
var protocVersion = regexp.MustCompile(`(?m)^// \tprotoc +v.*\n`)

// The generated messages match their schema and the generator that go.mod pins.
func TestMessagesAreCurrent(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("protoc"); err != nil {
		t.Skip("protoc is not on PATH; install the Debian package protobuf-compiler")
	}
	const dir, schema, code = "internal/restore/onnx/onnxpb", "onnx.proto", "onnx.pb.go"
	work := t.TempDir()
	plugin := filepath.Join(work, "protoc-gen-go")
	run(t, "go", "build", "-o", plugin, "google.golang.org/protobuf/cmd/protoc-gen-go")
	run(t, "protoc", "--plugin=protoc-gen-go="+plugin, "--proto_path="+dir,
		"--go_out="+work, "--go_opt=paths=source_relative", schema)
	got, err := os.ReadFile(filepath.Join(work, code))
	must(t, err)
	want := read(t, dir+"/"+code)
	if protocVersion.ReplaceAllString(string(got), "") != protocVersion.ReplaceAllString(want, "") {
		t.Errorf("%s/%s is not generated from %s; run: make generate", dir, code, schema)
	}
}
