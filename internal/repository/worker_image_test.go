package repository

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Images of the Dockerfiles have a version and a digest, the files and steps that they name exist, and both images run as an unprivileged
// user, end on SIGTERM and are built with the Go that the project requires. The linter in scripts/image-test.sh checks the stages.
func TestDockerfiles(t *testing.T) {
	t.Parallel()
	lines := regexp.MustCompile(`(?m)^/(\S+)$`).FindAllStringSubmatch(read(t, ".dockerignore"), -1)
	ignored := func(file string) bool {
		return slices.ContainsFunc(lines, func(m []string) bool { return strings.Split(file, "/")[0] == m[1] })
	}
	for _, file := range tracked(t) { // a missing file would make the version end in .dirty
		if ignored(file) {
			t.Errorf("Git tracks %s, but .dockerignore excludes it", file)
		}
	}
	script := read(t, "scripts/image.sh")
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "go.mod"))[1]
	uid := regexp.MustCompile(`(?m)^uid=(\d+)$`).FindStringSubmatch(script)[1]
	for _, verb := range []string{"worker", "coordinator"} {
		name := "Dockerfile." + verb
		text := read(t, name)
		images := regexp.MustCompile(`(?m)^ARG \w+_IMAGE=(\S+)$`).FindAllStringSubmatch(text, -1)
		if len(images) < 2 {
			t.Errorf("%s has the images %v", name, images)
		}
		for _, m := range images {
			if !regexp.MustCompile(`:(\d|bookworm)\S*@sha256:[0-9a-f]{64}$`).MatchString(m[1]) {
				t.Errorf("%s: name the image %s by a version and a digest", name, m[1])
			}
		}
		for _, m := range regexp.MustCompile(`(?m)^COPY (?:--from=\w+ )?(.*) \S+$`).FindAllStringSubmatch(text, -1) {
			for file := range strings.FieldsSeq(m[1]) {
				file = strings.TrimPrefix(file, "/src/")
				if filepath.IsAbs(file) { // made by an earlier stage
					continue
				}
				if _, err := os.Stat(filepath.Join(root, file)); err != nil || ignored(file) {
					t.Errorf("%s copies %s, which is missing or excluded by .dockerignore (%v)", name, file, err)
				}
			}
		}
		for _, m := range regexp.MustCompile(`(?m)^RUN (?:.* && )?(?:scripts/)?image\.sh (\w+) `).FindAllStringSubmatch(text, -1) {
			if !strings.Contains(script, "\n\""+m[1]+" ") {
				t.Errorf("%s: scripts/image.sh has no step %s", name, m[1])
			}
		}
		for _, want := range []string{
			"\nARG GO_IMAGE=golang:" + version, "\nUSER " + uid + ":" + uid + "\n", "\nSTOPSIGNAL SIGTERM\n", "\nENTRYPOINT [\"ddiff\", \"" + verb + "\"]\n",
			"\nVOLUME [\"/tmp\", \"/var/cache/ddiff\"]\n", "image.version=", "image.revision=", "image.source=", "image.licenses=", "image.title=",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %q", name, want)
			}
		}
	}
	pin := regexp.MustCompile(`"ep": "cuda",\s*"version": "(\d+\.\d+)\.`).FindStringSubmatch(read(t, "internal/restore/onnx/install/pinned.json"))
	if len(pin) != 2 || !strings.Contains(read(t, "Dockerfile.worker"), "ONNX Runtime "+pin[1]+" ") {
		t.Errorf("Dockerfile.worker does not mention the pinned ONNX Runtime (%v); check its CUDA version", pin)
	}
}

// skipCode is the exit code of scripts/image-test.sh for a machine that cannot run it.
const skipCode = 77

// TestWorkerImage builds the contents of the images in plain Debian roots and restores images there.
func TestWorkerImage(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: the test builds two images")
	}
	cmd := exec.CommandContext(t.Context(), "scripts/image-test.sh")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	last := text[strings.LastIndexByte(text, '\n')+1:]
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == skipCode:
		t.Skip(last)
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	case !strings.HasPrefix(last, "passed in "):
		t.Errorf("it ended with %q\n%s", last, out)
	}
	t.Log(last)
}
