package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Exit codes of ddiff, as docs/scripting.md lists them.
const (
	codeUsage = 2
	codeNATS  = 9
)

// commandLine is a command line of ddiff in a file of this repository.
type commandLine struct {
	where string
	args  []string
}

// commandLines returns those of compose.yaml, the units and the Dockerfiles.
func commandLines(t *testing.T) []commandLine {
	t.Helper()
	entry := func(file string) []string {
		m := regexp.MustCompile(`(?m)^ENTRYPOINT (\[.*\])$`).FindStringSubmatch(read(t, file))
		if m == nil {
			t.Fatalf("%s has no ENTRYPOINT", file)
		}
		var words []string
		must(t, json.Unmarshal([]byte(m[1]), &words))
		if words[0] != "ddiff" {
			t.Fatalf("%s starts %v", file, words)
		}
		return words[1:]
	}
	all := []commandLine{{"Dockerfile.worker", entry("Dockerfile.worker")}, {"Dockerfile.coordinator", entry("Dockerfile.coordinator")}}
	services := project(t).Services
	files := map[string]string{} // of the images that services build
	for _, s := range services {
		if s.Build != nil {
			files[s.Image] = s.Build.Dockerfile
		}
	}
	for name, s := range services {
		if file := files[s.Image]; file != "" {
			all = append(all, commandLine{"compose.yaml: " + name, append(entry(file), s.Command...)})
		}
	}
	settings := environmentFile(t)
	for _, unit := range units(t) {
		words := strings.Fields(strings.NewReplacer("${DDIFF_STORE}", "s3://results?endpoint=http://127.0.0.1:1", "${DDIFF_LISTEN}", "127.0.0.1:8620", "%i", "cpu",
			"$DDIFF_COORDINATOR_FLAGS", settings["DDIFF_COORDINATOR_FLAGS"], "$DDIFF_WORKER_FLAGS", settings["DDIFF_WORKER_FLAGS"]).Replace(unit.first("ExecStart")))
		if words[0] != "/usr/local/bin/ddiff" {
			t.Fatalf("%s starts %v", unit.name, words)
		}
		all = append(all, commandLine{unit.name, words[1:]})
	}
	return all
}

// The program accepts every command line: without a server it ends with the code of NATS, with a wrong flag with that of a wrong
// use. A renamed flag or a value out of range therefore fails this test.
func TestCommandLines(t *testing.T) {
	lines := commandLines(t)
	if len(lines) < 7 {
		t.Fatalf("only %d command lines: %v", len(lines), lines)
	}
	for _, c := range lines {
		t.Run(c.where, func(t *testing.T) {
			t.Parallel()
			// The last value of a flag counts.
			args := append(slices.Clone(c.args), "--nats", "nats://127.0.0.1:1", "--nats-wait", "0s")
			switch c.args[0] {
			case "coordinator":
				args = append(args, "--listen", "127.0.0.1:0", "--admin-token", filepath.Join(root, "deploy/compose/admin-token"),
					"--metrics-listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0", "--store", filepath.Join(t.TempDir(), "store"))
			case "worker":
				args = append(args, "--metrics-listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0", "--device", "cpu")
			}
			if code, out := exitOf(t, args...); code != codeNATS {
				t.Errorf("ddiff %s: exit code %d, want %d\n%s", strings.Join(args, " "), code, codeNATS, out)
			}
			if code, out := exitOf(t, append(args, "--no-such-flag")...); code != codeUsage {
				t.Errorf("a wrong flag: exit code %d, want %d\n%s", code, codeUsage, out)
			}
		})
	}
}

// exitOf runs ddiff and returns its exit code and output.
func exitOf(t *testing.T, args ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	library, err := exec.CommandContext(ctx, program, "runtime", "where").Output()
	if err != nil {
		t.Fatal("no ONNX Runtime; run: ddiff runtime install")
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "DDIFF_") || strings.HasPrefix(v, "OTEL_")
	}), "XDG_CACHE_HOME="+t.TempDir(), "DDIFF_ONNXRUNTIME="+strings.TrimSpace(string(library)), "AWS_EC2_METADATA_DISABLED=true")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// The campaign of make compose-demo is valid.
func TestDemoCampaign(t *testing.T) {
	text := strings.Replace(read(t, "deploy/compose/campaign.yaml"), "/examples/", filepath.Join(root, "examples")+"/", 1)
	file := filepath.Join(t.TempDir(), "campaign.yaml")
	must(t, os.WriteFile(file, []byte(text), 0o644))
	cmd := exec.CommandContext(t.Context(), program, "run", file, "--dry-run", "--out", t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
