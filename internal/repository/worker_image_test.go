package repository

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// instruction is one instruction of a Dockerfile, with its stage.
type instruction struct {
	stage, verb string
	words       []string
}

// dockerfile parses a Dockerfile, without comments, with continued lines joined, and with the arguments of bases replaced by their
// defaults.
func dockerfile(t *testing.T, name string) (all []instruction) {
	t.Helper()
	stage, joined := "", ""
	var bases []string // names and defaults
	for line := range strings.Lines(read(t, name)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		if more, ok := strings.CutSuffix(line, `\`); ok {
			joined += more + " "
			continue
		}
		words := strings.Fields(joined + line)
		joined = ""
		verb := strings.ToUpper(words[0])
		switch name, image, ok := strings.Cut(words[len(words)-1], "="); {
		case verb == "ARG" && ok && strings.HasSuffix(name, "_IMAGE"):
			bases = append(bases, "${"+name+"}", image)
		case verb == "FROM":
			stage = words[len(words)-1]
			words[1] = strings.NewReplacer(bases...).Replace(words[1])
		}
		all = append(all, instruction{stage, verb, words[1:]})
	}
	return all
}

const workerDockerfile, coordinatorDockerfile = "Dockerfile.worker", "Dockerfile.coordinator"

// imageDigest is the end of an image's name that pins it.
var imageDigest = regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)

// Every stage and file of the Dockerfiles exists, images have a version and a digest, and digests of files are pinned in
// the program only.
func TestDockerfiles(t *testing.T) {
	t.Parallel()
	checkStages(t, workerDockerfile, "build", "library", "base-cpu", "base-cuda", "documents", "worker")
	checkStages(t, coordinatorDockerfile, "build", "coordinator")
	for _, name := range []string{workerDockerfile, coordinatorDockerfile, "scripts/image.sh", "scripts/image-test.sh"} {
		text := regexp.MustCompile(`(?m)^(ARG [A-Z]+_IMAGE=\S+)@sha256:[0-9a-f]{64}$`).ReplaceAllString(read(t, name), "$1")
		if digest := regexp.MustCompile(`[0-9a-f]{40}|[A-Za-z0-9+/]{86}==`).FindString(text); digest != "" {
			t.Errorf("%s has the digest %s; pin it in the program", name, digest)
		}
	}
}

// checkStages checks the instructions of a Dockerfile, which must have these stages.
func checkStages(t *testing.T, file string, wanted ...string) {
	t.Helper()
	stages := map[string]bool{}
	ignored := ignoredByDocker(t)
	script := read(t, "scripts/image.sh")
	for _, i := range dockerfile(t, file) {
		switch i.verb {
		case "FROM":
			if len(i.words) != 3 || i.words[1] != "AS" {
				t.Errorf("FROM %v: a stage has a name", i.words)
			}
			checkBase(t, i.words[0], stages)
			stages[i.stage] = true
		case "COPY":
			checkCopy(t, i.words, stages, ignored)
		case "RUN":
			for k, w := range i.words {
				if path.Base(w) == "image.sh" && !strings.Contains(script, "\n\""+i.words[k+1]+" ") {
					t.Errorf("RUN %v: scripts/image.sh has no step %s", i.words, i.words[k+1])
				}
			}
		}
	}
	for _, name := range wanted {
		if !stages[name] {
			t.Errorf("%s has no stage %s", file, name)
		}
	}
}

// checkBase checks that an image has a version and a digest. Earlier stages need none.
func checkBase(t *testing.T, image string, stages map[string]bool) {
	t.Helper()
	if name, variant := strings.CutSuffix(image, "${VARIANT}"); variant {
		if !stages[name+"cpu"] || !stages[name+"cuda"] {
			t.Errorf("FROM %s: one of the stages %scpu and %scuda is missing", image, name, name)
		}
		return
	}
	if _, tag, ok := strings.Cut(image, ":"); !stages[image] && (!ok || !regexp.MustCompile(`^\d|bookworm`).MatchString(tag)) {
		t.Errorf("FROM %s: name the image by a version", image)
	}
	if !stages[image] && !imageDigest.MatchString(image) {
		t.Errorf("FROM %s: pin the image by its digest", image)
	}
}

// checkCopy checks that the sources of COPY exist in the repository or in earlier stages.
func checkCopy(t *testing.T, words []string, stages map[string]bool, ignored []string) {
	t.Helper()
	if stage, ok := strings.CutPrefix(words[0], "--from="); ok {
		if !stages[stage] {
			t.Errorf("COPY %v: there is no stage %s above", words, stage)
		}
		if file, ok := strings.CutPrefix(words[1], "/src/"); ok {
			wantCopied(t, file, ignored)
		}
		return
	}
	for _, file := range words[:len(words)-1] {
		wantCopied(t, file, ignored)
	}
}

func wantCopied(t *testing.T, file string, ignored []string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, file)); err != nil {
		t.Errorf("source of COPY: %v", err)
	}
	if slices.Contains(ignored, strings.Split(file, "/")[0]) {
		t.Errorf("%s is copied, but .dockerignore excludes it", file)
	}
}

// ignoredByDocker returns the folders that .dockerignore excludes. Git must track none of them.
func ignoredByDocker(t *testing.T) []string {
	t.Helper()
	var out []string
	for line := range strings.Lines(read(t, ".dockerignore")) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "/"); ok {
			out = append(out, name)
		}
	}
	for _, name := range tracked(t) { // a missing file would make the version end in .dirty
		if top := strings.Split(name, "/")[0]; slices.Contains(out, top) {
			t.Errorf("Git tracks %s, but .dockerignore excludes %s", name, top)
		}
	}
	return out
}

// Both images run as an unprivileged user, end on SIGTERM, name their version, and use the versions that the project and its
// ONNX Runtime require.
func TestImageSettings(t *testing.T) {
	t.Parallel()
	uid := regexp.MustCompile(`(?m)^uid=(\d+)$`).FindStringSubmatch(read(t, "scripts/image.sh"))
	if len(uid) != 2 || uid[1] == "0" {
		t.Fatalf("scripts/image.sh has the user %v; want a number, not 0", uid)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "go.mod"))[1]
	bases := map[string]string{}
	for file, verb := range map[string]string{workerDockerfile: "worker", coordinatorDockerfile: "coordinator"} {
		last := map[string]string{}
		for _, i := range dockerfile(t, file) {
			if i.verb == "FROM" {
				bases[i.stage] = i.words[0]
				clear(last)
			}
			last[i.verb] = strings.Join(i.words, " ")
		}
		if last["USER"] != uid[1]+":"+uid[1] || last["STOPSIGNAL"] != "SIGTERM" || last["ENTRYPOINT"] != `["ddiff", "`+verb+`"]` {
			t.Errorf("%s: USER %s, STOPSIGNAL %s, ENTRYPOINT %s", file, last["USER"], last["STOPSIGNAL"], last["ENTRYPOINT"])
		}
		if !strings.Contains(last["VOLUME"], "/tmp") || !strings.Contains(last["VOLUME"], "/var/cache/ddiff") {
			t.Errorf("%s: VOLUME %s: a read-only root needs places to write to", file, last["VOLUME"])
		}
		for _, label := range []string{"version", "revision", "source", "licenses", "title"} {
			if !strings.Contains(last["LABEL"], "org.opencontainers.image."+label+"=") {
				t.Errorf("%s has no label %s", file, label)
			}
		}
		if !strings.HasPrefix(bases["build"], "golang:"+version) {
			t.Errorf("%s: the build uses %s, go.mod requires %s", file, bases["build"], version)
		}
	}
	if bases["coordinator"] != bases["base-cpu"] {
		t.Errorf("the coordinator's base is %s, the worker's %s", bases["coordinator"], bases["base-cpu"])
	}
	if !regexp.MustCompile(`^nvidia/cuda:12\.\d+\.\d+-cudnn-runtime-`).MatchString(bases["base-cuda"]) {
		t.Errorf("the base is %s, the pinned ONNX Runtime requires CUDA 12 with cuDNN", bases["base-cuda"])
	}
	pin := regexp.MustCompile(`"ep": "cuda",\s*"version": "(\d+\.\d+)\.`).FindStringSubmatch(read(t, "restore/onnx/install/pinned.json"))
	if len(pin) != 2 || !strings.Contains(read(t, workerDockerfile), "ONNX Runtime "+pin[1]+" ") {
		t.Errorf("%s does not mention the pinned ONNX Runtime (%v); check its CUDA version", workerDockerfile, pin)
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
	last := ""
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		last = s.Text()
	}
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
