package repository

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ddiff/internal/restore/haar"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

// makeTargets returns the targets of the Makefile that `make help` shows.
func makeTargets(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):.*## `).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		out = append(out, m[1])
	}
	if len(out) == 0 {
		t.Fatal("the Makefile has no target with a comment of two hashes")
	}
	return out
}

// fence matches a code block of a Markdown file: its language and its lines.
var fence = regexp.MustCompile("(?ms)^ *```(\\w*)\n(.*?\n) *```$")

// commands returns the command lines in the shell blocks of a document, with continued lines joined and comments removed. It
// fails the test at a block that no test reads.
func commands(t *testing.T, document string) []string {
	t.Helper()
	var out []string
	for _, block := range fence.FindAllStringSubmatch(read(t, document), -1) {
		// TestDocumentedCampaigns reads YAML, TestRecipes Go and Markdown, make programs-test, make api-test and make python-test Python; the others are pictures, formulas and files.
		switch language := block[1]; {
		case language == "sh":
		case slices.Contains([]string{"yaml", "mermaid", "bibtex", "json"}, language), (language == "go" || language == "md") && slices.Contains([]string{"docs/new-method.md", "docs/new-task.md", "docs/new-metric.md"}, document),
			language == "python" && slices.Contains([]string{"docs/scripting.md", "docs/api.md", "docs/python.md", "python/README.md"}, document),
			(language == "" || language == "text") && !regexp.MustCompile(`(?m)^(ddiff|make) `).MatchString(block[2]):
			continue
		default:
			t.Errorf("%s: no test reads this block of %q:\n%s", document, language, block[2])
		}
		for line := range strings.SplitSeq(strings.ReplaceAll(strings.ReplaceAll(block[2], "\\\n", " "), "&&", "\n"), "\n") {
			line, _, _ = strings.Cut(line, " #")
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				out = append(out, line)
			}
		}
	}
	return out
}

// commandRow states how commands with a beginning are tested.
type commandRow struct {
	begin string // expression
	flags string // appended: the last value of a flag counts; --help parses the others and runs nothing
	code  string // expression of the exit code, 0 by default
	not   string // why the command is not run
}

// how states how a documented command is tested: the first row whose expression matches its beginning counts. A command without a
// row fails the test. The command is run unless the row says why not.
var how = []commandRow{
	{begin: `export DDIFF_SERVER=\S+`, not: "it sets a variable"},
	{begin: `docker`, not: "needs Docker; internal/deploy reads the files, make compose-demo runs them"},
	{begin: `kubectl|helm`, not: "needs Kubernetes; make chart-test installs the chart"},
	{begin: `sbatch`, not: "needs Slurm"},
	{begin: `python3 -m ddiff_export (ldm|stable-diffusion)`, not: "needs published weights; make priors-test exports the structure with random ones"},
	{begin: `systemctl|install|tar|cd /usr/local/share/doc/ddiff`, not: "changes the machine; internal/deploy reads the units and unpacks the archive"},
	{begin: `git checkout`, not: "changes the checkout"},
	{begin: `nats-server`, not: "internal/testbed and queue start servers with the file"},
	{begin: `python examples/python/\w+.py`, not: "needs wandb and MLflow; make programs-test runs it"},
	{begin: `curl`, not: "needs a server; make api-test sends requests to all routes"},
	{begin: `python3 tools/gpu_check.py`, not: "needs a GPU"},

	{begin: `ddiff runtime install`, flags: "--help", not: "downloads"},
	{begin: `ddiff pull`, flags: "--help", not: "needs a bucket; TestPull has one"},
	{begin: `bin/ddiff run .* --(method renoise|task vignette).*`, flags: "--help", not: "TestRecipes runs it"},
	{begin: `bin/ddiff (run examples/images --task denoise|compare out/a out/b --metric mae)`, flags: "--help", not: "TestRecipes runs it"},
	{begin: `ddiff score .* --device cuda`, flags: "--help", not: "needs a GPU"},
	{begin: `ddiff (run|score|report) (examples|out)/paper/\w+(.yaml)?`, flags: "--help", not: "TestPaper runs them with data of its own"},
	{begin: `ddiff coordinator`, code: "9", flags: "--store results --nats nats://127.0.0.1:1 --nats-wait 0s"},
	{begin: `ddiff worker`, code: "9", flags: "--device cpu --nats nats://127.0.0.1:1 --nats-wait 0s"},
	{begin: `ddiff (submit|list|status|top|workers|append|logs|pause|resume|cancel|change|retry|delete|token)`, code: "9",
		flags: "--server http://127.0.0.1:1"}, // after the command has accepted its flags
	{begin: `ddiff login`, not: "needs a server; TestAdminToken has one"},
	{begin: `ddiff run photo.png --operator`, flags: "--size 64 --steps 2"},
	{begin: `ddiff run`, flags: "--size 32 --steps 2 --limit 1"},
	{begin: `ddiff tune`, flags: "--size 32 --steps 2"},
	{begin: `pip install bin/wheel/\S+`, not: "make python-test installs the wheel"},
	{begin: `ddiff restore`, flags: "--steps 2"},
	{begin: `ddiff prior check`, flags: "--size 32"},
	{begin: `cp|/usr/bin/python3 examples/../tools/gallery.py`},
	{begin: `ddiff doctor`, code: "[04]"}, // 4: something is missing
	{begin: `ddiff (prior|operator|runtime where|tasks|methods|rules|report|compare|score|verify|replay|completion|man)`},
}

// rowOf returns the index of the row for a command, or -1.
func rowOf(line string) int {
	return slices.IndexFunc(how, func(r commandRow) bool {
		return regexp.MustCompile(`^(\w+="[^"]*" )?(` + r.begin + `)(\s|$)`).MatchString(line)
	})
}

// before has the commands that make the files that a document reads.
var before = map[string][]string{
	"docs/results.md": {
		"ddiff run photos --task hdr --out out/demo", "cp -r out/demo out/a", "ddiff run photos --task hdr --method diffpir --out out/b",
		"ddiff run photos --task hdr --set gamma0=8,10 --out out/sweep", "ddiff run campaign.yaml --out out/paper",
		"ddiff run photos --task hdr --out out", "ddiff run photos --task hdr --prior unet.onnx --out other", "cp other/items/*/restored.png photo.png",
	},
	"docs/photographs.md": {"/usr/bin/python3 examples/../tools/gallery.py files ."},
	"docs/scripting.md":   {"ddiff run photos --task hdr --out out/demo"},
}

// TestDocumentedCommands runs every command in the documents, those of a document in their order and in one folder.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	targets, program, used := makeTargets(t), ddiff(t), make([]bool, len(how))
	for _, document := range tracked(t, "*.md") {
		var lines []string // to run
		for _, line := range slices.Concat(before[document], commands(t, document)) {
			words, i := strings.Fields(line), rowOf(line)
			switch {
			case words[0] == "make":
				for _, w := range words[1:] {
					if !strings.Contains(w, "=") && !slices.Contains(targets, w) {
						t.Errorf("%s: %q: the Makefile has no target %s", document, line, w)
					}
				}
			case i < 0:
				t.Errorf("%s: no row of how tests %q", document, line)
			default:
				used[i] = true
				if how[i].not == "" || how[i].flags != "" {
					lines = append(lines, line)
				}
			}
		}
		t.Run(document, func(t *testing.T) {
			t.Parallel()
			if len(lines) > 0 {
				runCommands(t, program, lines)
			}
		})
	}
	for i, r := range how {
		if !used[i] {
			t.Errorf("no document has a command that begins with %s", r.begin)
		}
	}
}

// runCommands runs lines of a document in a folder with the files that documents name.
func runCommands(t *testing.T, program string, lines []string) {
	t.Helper()
	dir := t.TempDir()
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "DDIFF_") || strings.HasPrefix(v, "OTEL_") })
	env = append(env, "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "XDG_CACHE_HOME="+t.TempDir(),
		"AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=secret", "DDIFF_ONNXRUNTIME="+strings.TrimSpace(run(t, program, "runtime", "where")))
	documentFiles(t, dir)
	rewrite := strings.NewReplacer(" --nats ...", "", " ...", "", "bin/ddiff", "ddiff", "items/ID", "items/*", "/etc/bash_completion.d/", "", "/etc/ddiff/notify.key", "notify.key")
	for _, line := range lines {
		row := how[rowOf(line)]
		cmd := exec.CommandContext(t.Context(), "bash", "-c", rewrite.Replace(line)+" "+row.flags)
		cmd.Dir, cmd.Env = dir, env
		out, _ := cmd.CombinedOutput()
		got := strconv.Itoa(cmd.ProcessState.ExitCode())
		if !regexp.MustCompile("^"+cmp.Or(row.code, "0")+"$").MatchString(got) || row.flags == "--help" && bytes.Contains(out, []byte("[command]")) {
			t.Errorf("%s %s: exit code %s, want %s\n%s", line, row.flags, got, cmp.Or(row.code, "0"), out)
		}
	}
}

// documentFiles writes the pictures, models and campaigns that documents name.
func documentFiles(t *testing.T, dir string) {
	t.Helper()
	write := func(name string, data []byte, err error) {
		must(t, err)
		must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, name), data, 0o644))
	}
	for name, from := range map[string]string{
		"photo.png": "examples/images/coffee.png", "photograph.png": "examples/images/coffee.png", "frame.png": "charts/ddiff/files/image.png",
		"small.jpg": "restore/operator/testdata/jpeg/astronaut_95_0.jpg", "noisy.png": "examples/unseen/dam.png",
		"photo.jpg": "restore/operator/testdata/jpeg/astronaut_10_1.jpg", "noisy.tif": "restore/picture/testdata/camera.tif", "album/1.png": "examples/unseen/dam.png",
		"lpips_alex.onnx": "internal/restore/metric/testdata/lpips_alex.onnx",
	} {
		write(name, []byte(read(t, from)), nil)
	}
	must(t, os.CopyFS(filepath.Join(dir, "photos"), os.DirFS(filepath.Join(root, "examples", "images"))))
	for _, name := range []string{"examples", "priors"} {
		must(t, os.Symlink(mustAbs(t, filepath.Join(root, name)), filepath.Join(dir, name)))
	}
	const header = "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 32, 32), }"
	write("frames.npy", fmt.Appendf(nil, "\x93NUMPY\x01\x00\x76\x00%-117s\n%s", header, strings.Repeat("@", 3*32*32)), nil)
	write("campaign.yaml", []byte("dataset: {path: photos, size: 64}\ntasks: [hdr]\nunclipped: true\n"), nil)
	write("study.yaml", []byte("dataset: {path: photos, size: 64}\ntasks: [gaussian_deblur, inpaint_random]\nmethods: [ddiff, dpir, diffpir]\noutput: out/study\n"), nil)
	write("notify.key", []byte(strings.Repeat("k", 32)), nil)
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	for _, name := range []string{"ca.pem", "cert.pem"} {
		write(name, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), nil)
	}
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	write("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), err)

	g := onnx.NewGraph(onnx.DefaultOpset)
	g.Output("y", g.Mul(g.Input("x", onnx.Float, 1, 3, 64, 64), g.Input("gain", onnx.Float)))
	sensor, err := g.Marshal("sensor")
	write("sensor.onnx", onnxtest.WithMetadata(t, sensor, map[string]string{"ddiff.params.gain": "1; (0, 4]; gain of the sensor"}), err)
	unet, err := onnxtest.Network(32)
	write("unet.onnx", unet, err)
	must(t, haar.Write(filepath.Join(dir, "ldm-ffhq"), []byte(read(t, "internal/restore/prior/bundled/prior.onnx")), haar.Config{Levels: 2}))
}
