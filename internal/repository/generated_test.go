package repository

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// go.mod and go.sum hold what the code imports, and nothing else.
func TestModuleIsTidy(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "tidy", "-diff")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go.mod or go.sum is not tidy (%v); run: go mod tidy\n%.2000s", err, out)
	}
}

// protocVersion is the comment that names the protoc that was used; another one generates the
// same code.
var protocVersion = regexp.MustCompile(`(?m)^// \tprotoc +v.*\n`)

// The generated messages are those of the schema beside them, by the generator that go.mod
// pins.
func TestMessagesAreCurrent(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("protoc"); err != nil {
		t.Skip("protoc is not on PATH; install the Debian package protobuf-compiler")
	}
	const dir, schema, code = "restore/onnx/onnxpb", "onnx.proto", "onnx.pb.go"
	work := t.TempDir()
	plugin := filepath.Join(work, "protoc-gen-go")
	run(t, "go", "build", "-o", plugin, "google.golang.org/protobuf/cmd/protoc-gen-go")
	run(t, "protoc", "--plugin=protoc-gen-go="+plugin, "--proto_path="+dir,
		"--go_out="+work, "--go_opt=paths=source_relative", schema)
	got, err := os.ReadFile(filepath.Join(work, code))
	if err != nil {
		t.Fatal(err)
	}
	want := read(t, dir+"/"+code)
	if protocVersion.ReplaceAllString(string(got), "") != protocVersion.ReplaceAllString(want, "") {
		t.Errorf("%s/%s does not follow from %s; run: make generate", dir, code, schema)
	}
}
