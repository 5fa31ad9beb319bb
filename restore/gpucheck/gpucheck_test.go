package gpucheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ddiff/restore/onnx/install"
	"ddiff/restore/prior/randomnet"
)

// programMode is the environment variable that makes the test binary act as the program of a check.
const programMode = "DDIFF_GPUCHECK_TEST"

func TestMain(m *testing.M) {
	switch os.Getenv(programMode) {
	case "":
		os.Exit(m.Run())
	case "crash": // as a provider with a broken driver does
		_, _ = io.Copy(io.Discard, os.Stdin)
		fmt.Fprintln(os.Stderr, "the provider is about to crash")
		panic("crash")
	case "sections":
		if len(os.Args) == 4 && os.Args[2] == SectionArgs[1] {
			if err := ServeSection(context.Background(), os.Args[3], os.Stdin, os.Stdout); err != nil {
				fmt.Fprintln(os.Stderr, err.Error())
				os.Exit(1)
			}
			os.Exit(0)
		}
		fmt.Fprintln(os.Stderr, "the test program supports sections only")
		os.Exit(2)
	}
}

// program returns the test binary as the program of a check.
func program(t *testing.T, mode string) Self {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.Env = append(os.Environ(), programMode+"="+mode)
		return cmd
	}
}

// quick configures a small check of the CPU.
func quick(t *testing.T) Config {
	t.Helper()
	lib, err := install.Locate(install.LocateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := Config{}.Quick()
	c.Library, c.Device, c.Threads = lib.Path, "cpu", 1
	c.Photographs = []string{filepath.Join("..", "..", "examples", "images", "chelsea.png")}
	c.Tasks = []string{"gaussian_deblur"}
	return c
}

// TestSectionsOnCPU: the CPU agrees with itself exactly in float32, and up to rounding in float16.
func TestSectionsOnCPU(t *testing.T) {
	t.Parallel()
	c := quick(t)
	c.Only = []string{"network", "tasks", "process"}
	var progress bytes.Buffer
	r, err := Run(t.Context(), c, program(t, "sections"), &progress)
	if err != nil {
		t.Fatal(err)
	}
	status := map[string]string{}
	for _, s := range r.Sections {
		status[s.Name] = s.Status
	}
	want := map[string]string{
		"provider": StatusOK, "network": StatusOK, "tasks": StatusOK, "speed": StatusSkipped, "process": StatusFailed,
	}
	for name, s := range want {
		if status[name] != s {
			t.Errorf("section %s is %q, want %q\n%s", name, status[name], s, &progress)
		}
	}
	if failed := r.Failed(); len(failed) != 1 || failed[0] != "process" {
		t.Errorf("failed: %v", failed)
	}
	if r.Provider == nil || r.Provider.Name != "cpu" || r.parity() != 0 || len(r.Network) != 4 || len(r.Tasks) != 1 {
		t.Fatalf("provider %+v, parity %g, network %+v, tasks %+v", r.Provider, r.parity(), r.Network, r.Tasks)
	}
	for _, a := range r.Network {
		if a.Precision == fp16 && !(a.MaxAbs > 1e-6 && a.MaxAbs < 0.05*a.Largest) {
			t.Errorf("%s in float16 differs by %g of %g, want about 1e-3", a.Network, a.MaxAbs, a.Largest)
		}
	}
	task := r.Tasks[0]
	if task.GreyLevels != 0 || !(task.CPU >= 5) || len(task.Results) != 2 || task.Results[0].PSNRToCPU != 80 || task.Results[0].PSNR != task.CPU {
		t.Errorf("%+v", task)
	}
	if psnr := r.psnr(fp16); !(psnr >= 45) || !(psnr < 80) {
		t.Errorf("float16 against float32: %g dB; want 45 to 80", psnr)
	}
}

func TestCrashFailsTheSection(t *testing.T) {
	t.Parallel()
	r := &Report{}
	err := startSection(t.Context(), "network", quick(t), program(t, "crash"), r)
	if err == nil || !strings.Contains(err.Error(), "about to crash") {
		t.Errorf("error %v", err)
	}
	if _, err := Run(t.Context(), quick(t), program(t, "crash"), io.Discard); !errors.Is(err, ErrAbsent) {
		t.Errorf("error %v, want ErrAbsent because the provider cannot be opened", err)
	}
}

func TestAbsentDevice(t *testing.T) {
	t.Parallel()
	c := quick(t)
	c.Device = "cuda:7"
	r, err := Run(t.Context(), c, program(t, "sections"), io.Discard)
	if !errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), "cuda") {
		t.Errorf("error %v, want ErrAbsent naming cuda", err)
	}
	if len(r.Sections) != 1 || r.Sections[0].Status != StatusFailed {
		t.Errorf("sections %+v", r.Sections)
	}
}

func TestParseSMI(t *testing.T) {
	t.Parallel()
	v, err := parseSMI("NVIDIA H200, 550.54.15, 143771\n", 3)
	if err != nil || v[0] != "NVIDIA H200" || v[2] != "143771" {
		t.Errorf("%q, %v", v, err)
	}
	for _, bad := range []string{"", "No devices were found\n", "a, b\n"} {
		if v, err := parseSMI(bad, 3); err == nil {
			t.Errorf("parseSMI(%q) = %q, want an error", bad, v)
		}
	}
}

// sampleReport returns a report with invented figures.
func sampleReport() *Report {
	c := Config{Device: "cuda:0", Batches: []int{1, 16}, Random: randomnet.FFHQ()}
	speed := func(precision string, batch int, net, step float64) Speed {
		return Speed{Network: randomNetwork, Precision: precision, Batch: batch, NetworkMS: net, StepMS: step}
	}
	return &Report{
		Schema: Schema, Config: c,
		Sections: []Section{{Name: "provider", Status: StatusOK}, {Name: "tasks", Status: StatusFailed, Detail: "a|b"}},
		Provider: &Provider{Library: "1.29.0", Name: "cuda"},
		Network:  []Agreement{{bundledNetwork, fp32, 4, 1e-5}, {bundledNetwork, fp16, 4, 0.5}},
		Tasks: []Task{
			{Task: "hdr", StepMaxAbs: 2e-5, Results: []Result{{fp32, 30, 79}, {tf32, 30, 62}, {fp16, 30, 55}}},
			{Task: "inpaint_box", StepMaxAbs: 1e-6, Results: []Result{{fp32, 30, 79}, {tf32, 30, 61}, {fp16, 30, 57}}},
		},
		Speed:   []Speed{speed(fp32, 1, 10, 11), speed(fp32, 16, 100, 104), speed(fp16, 16, 40, 44)},
		Process: &Process{Memory: []int{500, 900, 510}, Restarted: true},
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	want := "device=cuda:0 provider=cuda parity_max=2.00e-05 tf32_psnr=61.0 fp16_psnr=55.0 ms_b1=11.00 ms_b16=104.00"
	if got := sampleReport().Line(); got != want {
		t.Errorf("line %q\nwant %q", got, want)
	}
	want = "device=cpu provider=skipped parity_max=skipped tf32_psnr=skipped fp16_psnr=skipped ms_b1=skipped ms_b2=skipped"
	if got := (&Report{Config: Config{Device: "cpu", Batches: []int{1, 2}}}).Line(); got != want {
		t.Errorf("line %q\nwant %q", got, want)
	}
}

func TestConfigValidation(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(c *Config){
		"Library": func(c *Config) { c.Library = "" },
		"Device":  func(c *Config) { c.Device = "auto" },
		"Tasks":   func(c *Config) { c.Tasks = []string{"sharpen"} },
		"Batches": func(c *Config) { c.Batches = []int{4, 1} },
		"Size":    func(c *Config) { c.Size = 30 },
		"Steps":   func(c *Config) { c.Steps = 1 },
		"Threads": func(c *Config) { c.Threads = -1 },
		"Only":    func(c *Config) { c.Only = []string{"all"} },
	} {
		c := Config{Library: "x", Device: "cuda"}
		change(&c)
		if _, err := c.Complete(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v does not name the field", name, err)
		}
	}
	if c := (Config{Size: 64, Batches: []int{3}}).Quick(); c.Size != 64 || c.Batches[0] != 3 || c.Steps != 4 || c.Random.Size != 32 {
		t.Errorf("quick: %+v", c)
	}
	c, err := Config{Library: "x", Device: "cuda"}.Complete()
	if err != nil || len(c.Tasks) != 8 || len(c.Batches) != 4 || c.Random.Base != 128 || c.Size != 256 {
		t.Errorf("%+v, %v", c, err)
	}
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	again, err := readConfig(bytes.NewReader(data))
	if err != nil || again.Measure != c.Measure || len(again.Batches) != 4 {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestMaxAbs(t *testing.T) {
	t.Parallel()
	if d := maxAbs([]float32{1, -3}, []float32{1.5, -1}); d != 2 {
		t.Errorf("difference %g, want 2", d)
	}
	if d := maxAbs([]float32{1, float32(math.NaN()), 2}, nil); !math.IsNaN(d) {
		t.Errorf("maximum of values with NaN is %g, want NaN", d)
	}
	if err := withinBound(math.NaN(), 1, "x"); !errors.Is(err, ErrBounds) {
		t.Errorf("NaN: error %v, want ErrBounds", err)
	}
}

// TestReportIsDocumented: docs/devices.md names every field of the report.
func TestReportIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "devices.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{
		Report{}, Machine{}, GPU{}, Section{}, Provider{}, Agreement{}, Task{}, Result{}, Speed{}, Process{},
	} {
		typ := reflect.TypeOf(v)
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("docs/devices.md does not name %s.%s, `%s`", typ.Name(), typ.Field(i).Name, name)
			}
		}
	}
}
