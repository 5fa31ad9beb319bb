package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ddiff/restore/operator"
)

func TestTasks(t *testing.T) {
	t.Parallel()
	all := operator.Builtin().Names()
	e := ddiff(t, "tasks")
	wantCode(t, e, 0)
	for _, want := range append(all, "natural", "gradient", "ffhq", "imagenet", "diff_pnp_hqs") {
		if !strings.Contains(e.stdout, want) {
			t.Errorf("%s is missing\n%v", want, e)
		}
	}
	e = ddiff(t, "tasks", "--json")
	wantCode(t, e, 0)
	var infos []struct {
		Name, About string
		Params      map[string]float64
		Presets     map[string]struct{ Steps int }
	}
	must(t, json.Unmarshal([]byte(e.stdout), &infos))
	if len(infos) != len(all) {
		t.Fatalf("%d tasks, want %d", len(infos), len(all))
	}
	for _, info := range infos {
		if info.About == "" || len(info.Presets) != 4 || info.Presets["ffhq"].Steps == 0 {
			t.Errorf("the documentation of task %s is incomplete: %+v", info.Name, info)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	e := ddiff(t, "version")
	wantCode(t, e, 0)
	lib, err := library()
	must(t, err)
	for _, want := range []string{"ddiff 0.", "linux/", "ONNX Runtime ", lib.Path} {
		if !strings.Contains(e.stdout, want) {
			t.Errorf("%q is missing\n%v", want, e)
		}
	}
	e = ddiff(t, "version", "--json")
	wantCode(t, e, 0)
	var report struct {
		Version, Platform string
		Pinned            map[string]string
		Library           struct{ Version, Path string }
	}
	must(t, json.Unmarshal([]byte(e.stdout), &report))
	if !strings.HasPrefix(report.Version, "0.") || report.Pinned["cpu"] == "" || report.Library.Path != lib.Path || report.Library.Version != lib.Version {
		t.Errorf("%+v", report)
	}
}

func TestPriorInspect(t *testing.T) {
	t.Parallel()
	e := ddiff(t, "prior", "inspect", "bundled")
	wantCode(t, e, 0)
	for _, want := range []string{"sha256", "prediction", "schedule", "channels", "parameters", "licence"} {
		if !strings.Contains(e.stdout, want) {
			t.Errorf("%q is missing\n%v", want, e)
		}
	}
	e = ddiff(t, "prior", "inspect", "bundled", "--json")
	wantCode(t, e, 0)
	var info struct {
		SHA256     string
		Parameters int
		Card       struct{ Channels int }
	}
	must(t, json.Unmarshal([]byte(e.stdout), &info))
	if len(info.SHA256) != 64 || info.Parameters < 1000 || info.Card.Channels != 3 {
		t.Errorf("the bundled prior is %+v", info)
	}
}

// TestRuntimeWhere runs in the user's own environment.
func TestRuntimeWhere(t *testing.T) {
	t.Parallel()
	lib, err := library()
	must(t, err)
	cmd := exec.Command(program, "runtime", "where")
	cmd.Env = os.Environ()
	e := end(t, cmd)
	wantCode(t, e, 0)
	if strings.TrimSpace(e.stdout) != lib.Path {
		t.Errorf("%q, want %q", e.stdout, lib.Path)
	}
}

// TestMissingRuntime runs without ONNX Runtime, or with another file in its place.
func TestMissingRuntime(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	text := filepath.Join(empty, "libonnxruntime.so")
	write(t, text, []byte("this is no library"))
	for _, c := range []struct {
		name    string
		env     string
		flags   []string
		message []string
	}{
		{"flag, nowhere", "", []string{"--onnxruntime", "/nonexistent"}, []string{"--onnxruntime", "/nonexistent", "ddiff runtime install"}},
		{"flag, directory", "", []string{"--onnxruntime", empty}, []string{"--onnxruntime", empty, "not a file"}},
		{"flag, no library", "", []string{"--onnxruntime", text}, []string{"--onnxruntime", text, "not a shared library"}},
		{"environment, nowhere", "DDIFF_ONNXRUNTIME=/nonexistent", nil, []string{"DDIFF_ONNXRUNTIME", "/nonexistent", "ddiff runtime install"}},
		{"environment, no library", "DDIFF_ONNXRUNTIME=" + text, nil, []string{"DDIFF_ONNXRUNTIME", text, "not a shared library"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "out")
			cmd := command(t, append(small("--images", photograph("coffee"), "--task", "hdr", "--out", out), c.flags...)...)
			if c.env != "" {
				cmd.Env = append(environment(), c.env)
			}
			e := end(t, cmd)
			wantCode(t, e, 4)
			wantMessage(t, e, append([]string{"ddiff: "}, c.message...)...)
		})
	}
}

// TestWrongCommandLines checks the errors of command lines.
func TestWrongCommandLines(t *testing.T) {
	t.Parallel()
	campaign := filepath.Join(t.TempDir(), "campaign.yaml")
	write(t, campaign, []byte("dataset: {path: photos}\ntasks: [hdr]\nstepz: 10\n"))
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	write(t, wrong, []byte("dataset: {path: photos}\ntasks: [hdr]\nsteps: many\n"))
	fine := filepath.Join(t.TempDir(), "fine.yaml")
	write(t, fine, []byte("dataset: {path: photos}\ntasks: [hdr]\nmethods: [ddiff]\n"))
	empty, folder := filepath.Join(t.TempDir(), "empty.csv"), filepath.Join(t.TempDir(), "photos.yaml")
	must(t, os.Mkdir(folder, 0o755))
	write(t, empty, nil)
	for _, c := range []struct {
		name    string
		args    []string
		message string
	}{
		{"empty list", []string{"run", empty, "--task", "hdr", "--out", t.TempDir(), "-q"}, `ddiff: read dataset "` + empty + `": dataset has no rows: is an empty file; add at least one row`},
		{"unknown command", []string{"renovate"}, `unknown command "renovate"`},
		{"unknown flag", []string{"run", "--step", "10"}, "unknown flag: --step; did you mean --steps? see: ddiff run --help"},
		{"levels of 255", []string{"restore", photograph("coffee"), "--task", "denoise", "--sigma", "15"}, "black is -1 and white is 1; 15 of 255 levels are --sigma 0.118"},
		{"nothing to run", []string{"run"}, "nothing to run; give a campaign file, or images and --task"},
		{"directory called like a campaign", []string{"run", folder}, "--task is missing"},
		{"directory as a campaign", []string{"submit", folder}, "read campaign: " + folder + ": is not a regular file but a directory; give a file"},
		{"two campaigns", []string{"run", fine, wrong}, "give one campaign file alone"},
		{"campaign and image", []string{"run", photograph("coffee"), fine}, "give one campaign file alone"},
		{"no such image", []string{"run", "nowhere.png", "--task", "hdr"}, "run: nowhere.png: no such file or directory; give images"},
		{"no image", []string{"run", fine + ".png", "--task", "hdr"}, "no such file"},
		{"no images among several", []string{"run", "main.go", "root.go", "--task", "hdr"}, "none of the 2 arguments is an image"},
		{"images without a task", []string{"run", photograph("coffee")}, "--task is missing; give --task NAME or --task all"},
		{"param without a value", []string{"run", fine, "--param", "scale"}, `ddiff: --param: "scale" is not NAME=VALUE`},
		{"param that is no number", []string{"run", fine, "--param", "scale=big"}, `--param scale=big: "big" is not a number`},
		{"param of no task", []string{"run", fine, "--param", "drop=0.5"}, "--param drop=0.5: unknown parameter of the campaign's tasks \"drop\""},
		{"param of another task", []string{"run", fine, "--param", "inpaint_random.drop=0.5"}, "unknown parameter of the campaign's tasks \"inpaint_random.drop\" (valid: hdr.scale)"},
		{"param of another task with the same parameter", []string{"run", fine, "--task", "motion_deblur", "--param", "gaussian_deblur.size=31"},
			"unknown parameter of the campaign's tasks \"gaussian_deblur.size\" (did you mean \"motion_deblur.size\"?)"},
		{"unknown param", []string{"run", fine, "--param", "hdr.scal=3"}, `--param hdr.scal=3: unknown parameter of the campaign's tasks "hdr.scal" (did you mean "hdr.scale"?)`},
		{"unknown solver parameter", []string{"run", fine, "--solver", "gama0=1"}, `--solver gama0=1: `},
		{"solver parameter of another type", []string{"run", fine, "--solver", "gamma0=much"}, `--solver gamma0=much: `},
		{"solver parameter out of range", []string{"run", fine, "--solver", "gamma0=-1"}, `--solver gamma0=-1: -1 is outside (0, 1e+06]`},
		{"unknown rule", []string{"run", fine, "--select", "best"}, `ddiff: --select: unknown value "best"`},
		{"unknown verb", []string{"prior", "inspct"}, `unknown command "inspct" for "ddiff prior"`},
		{"mistyped command", []string{"rum"}, `unknown command "rum" for "ddiff"; did you mean run; see: ddiff --help`},
		{"command of another program", []string{"cost"}, "unknown command \"cost\" for \"ddiff\"; see: ddiff --help\n"},
		{"no task", []string{"run", "--images", "x"}, "--task is missing; give --task NAME or --task all, see: ddiff tasks"},
		{"unknown task", []string{"run", "--images", "x", "--task", "hdrr"}, `unknown task "hdrr" (did you mean "hdr"?)`},
		{"unknown method", []string{"run", "--images", "x", "--task", "hdr", "--method", "dif"}, `unknown method "dif"`},
		{"unknown method of restore", []string{"restore", photograph("coffee"), "--task", "hdr", "--method", "foo"}, `unknown method "foo" (valid: auto, ddiff, `},
		{"unknown preset", []string{"run", "--images", "x", "--task", "hdr", "--preset", "imagnet"}, `(did you mean "imagenet"?)`},
		{"too many steps", []string{"run", "--images", "x", "--task", "hdr", "--steps", "5000"}, "ddiff: --steps: "},
		{"flag over a campaign", []string{"run", fine, "--method", "ddiff", "--method", "dif"}, `ddiff: --method: unknown method "dif"`},
		{"no number", []string{"run", "--images", "x", "--task", "hdr", "--sigma", "much"}, "--sigma"},
		{"wrong device", []string{"run", "--images", photograph("coffee"), "--task", "hdr", "--out", t.TempDir(), "--device", "gpu"}, "none of auto, cpu, cuda[:N], tensorrt[:N], webgpu[:N] or openvino"},
		{"wrong log level", []string{"run", "--images", "x", "--task", "hdr", "--log-level", "loud"}, "none of debug, info, warn, error, off"},
		{"missing campaign", []string{"run", "nowhere.yaml"}, "nowhere.yaml: no such file"},
		{"unknown field", []string{"run", campaign}, campaign + `:3: unknown field "stepz" (did you mean "steps"?)`},
		{"wrong type", []string{"run", wrong}, wrong + ":3: steps: want an integer"},
		{"nothing to inspect", []string{"prior", "inspect"}, "prior inspect: 0 arguments; usage: ddiff prior inspect FILE|DIR|bundled; see: ddiff prior inspect --help"},
		{"too many arguments", []string{"man", "a", "b"}, "man: 2 arguments; usage: ddiff man DIR; see: "},
		{"help on nothing", []string{"help", "renovate"}, `help: unknown command or topic "renovate"`},
		{"completion of another shell", []string{"completion", "tcsh"}, `completion: unknown command "tcsh"`},
		{"coordinator without a store", []string{"coordinator", "--nats", "nats://127.0.0.1:1"}, "--store is missing; give --store s3://bucket/prefix, or a directory"},
		{"negative threads", []string{"run", "--images", photograph("coffee"), "--task", "hdr", "--out", t.TempDir(), "--threads", "-2"}, "ddiff: --threads: -2 is negative"},
		{"unknown precision", []string{"run", "--images", photograph("coffee"), "--task", "hdr", "--out", t.TempDir(), "--precision", "fp8"}, `ddiff: --precision: unknown value "fp8" (valid: float32, `},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := ddiff(t, c.args...)
			wantCode(t, e, 2)
			wantMessage(t, e, "ddiff: ", c.message)
			if e.stdout != "" {
				t.Errorf("stdout has %q", e.stdout)
			}
		})
	}
}

// TestMethodsDefaults: ddiff methods prints the steps of each method, and no default for a parameter that must be stated.
func TestMethodsDefaults(t *testing.T) {
	t.Parallel()
	text := ddiff(t, "methods")
	wantCode(t, text, 0)
	if want := "ddiff methods --json those of all methods."; !strings.Contains(text.stdout, want) {
		t.Errorf("the end lacks %q", want)
	}
	for method, want := range map[string]string{"dmplug": "  5000 steps by default, at most 20000\n", "dps": "  1000 steps by default\n"} {
		_, section, _ := strings.Cut("\n"+text.stdout, "\n"+method+": ")
		section, _, _ = strings.Cut(section, "\n\n")
		if !strings.Contains(section, want) {
			t.Errorf("section of %s lacks %q:\n%s", method, want, section)
		}
	}
	for _, line := range strings.Split(text.stdout[strings.Index(text.stdout, "latent_ddiff: "):], "\n") {
		if f := strings.Fields(line); len(f) > 0 && f[0] == "gamma0" && !slices.Contains(f, "none") {
			t.Errorf("latent_ddiff has a default of gamma0: %s", line)
		}
	}

	var methods []struct {
		Name       string
		MaxSteps   int `json:"max_steps"`
		Parameters []struct {
			Name    string
			Default any
		}
	}
	must(t, json.Unmarshal([]byte(ddiff(t, "methods", "--json").stdout), &methods))
	for _, m := range methods {
		if (m.MaxSteps != 0) != (m.Name == "dmplug") {
			t.Errorf("%s has at most %d steps", m.Name, m.MaxSteps)
		}
		for _, p := range m.Parameters {
			if (p.Default == nil) != (m.Name == "latent_ddiff" && p.Name == "gamma0") {
				t.Errorf("default of %s of %s: %v", p.Name, m.Name, p.Default)
			}
		}
	}
}

// TestOneEntry: ddiff methods and ddiff tasks print the entry that their argument names, and no other.
func TestOneEntry(t *testing.T) {
	t.Parallel()
	e := ddiff(t, "methods", "daps")
	wantCode(t, e, 0)
	if !strings.HasPrefix(e.stdout, "daps: ") || strings.Count(e.stdout, " steps by default") != 1 {
		t.Errorf("methods daps: %v", e)
	}
	e = ddiff(t, "tasks", "denoise")
	wantCode(t, e, 0)
	if n := strings.Count(e.stdout, "denoise"); n != 5 || strings.Contains(e.stdout, "hdr") { // the task and four presets
		t.Errorf("tasks denoise names it %d times: %v", n, e)
	}
	for _, command := range []string{"methods ddiff", "tasks hdr"} {
		words := strings.Fields(command)
		var entries []struct{ Name string }
		must(t, json.Unmarshal([]byte(ddiff(t, append(words, "--json")...).stdout), &entries))
		if len(entries) != 1 || entries[0].Name != words[1] {
			t.Errorf("%s --json has the entries %v", command, entries)
		}
	}
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	e := ddiff(t, "doctor")
	wantCode(t, e, 0)
	for _, name := range []string{"ONNX Runtime", "provider cpu"} {
		if !strings.Contains(e.stdout, "ok       "+name) {
			t.Errorf("no line reports %s as ok\n%v", name, e)
		}
	}
	for _, name := range []string{"provider cuda", "provider webgpu"} {
		if !strings.Contains(e.stdout, " "+name+" ") {
			t.Errorf("no line reports %s\n%v", name, e)
		}
	}

	e = ddiff(t, "doctor", "--json")
	wantCode(t, e, 0)
	var all struct {
		Findings []struct{ Name, Status, Detail, Remedy string }
	}
	must(t, json.Unmarshal([]byte(e.stdout), &all))
	if len(all.Findings) < 5 {
		t.Errorf("%d findings", len(all.Findings))
	}
	bundle := filepath.Join(t.TempDir(), "bundle.tar.gz")
	e = ddiff(t, "doctor", "--json", "--bundle", bundle)
	wantCode(t, e, 0)
	var beside struct {
		Findings []struct{ Name string }
		Bundle   string
	}
	must(t, json.Unmarshal([]byte(e.stdout), &beside))
	if _, err := os.Stat(bundle); err != nil || beside.Bundle != bundle || len(beside.Findings) != len(all.Findings) {
		t.Errorf("%v: %v", err, e)
	}
	for _, f := range all.Findings {
		if f.Name == "" || f.Detail == "" || f.Status != "ok" && (f.Status != "missing" || f.Remedy == "") {
			t.Errorf("finding %+v is neither ok nor missing with a remedy", f)
		}
	}
}

// TestDoctorWithoutRuntime: doctor fails without ONNX Runtime, and names the remedy.
func TestDoctorWithoutRuntime(t *testing.T) {
	t.Parallel()
	e := ddiff(t, "doctor", "--onnxruntime", "/nowhere")
	wantCode(t, e, 4)
	if !strings.Contains(e.stdout, "missing  ONNX Runtime") || !strings.Contains(e.stdout, "run: ddiff runtime install") {
		t.Errorf("want the missing library and the remedy\n%v", e)
	}
}
