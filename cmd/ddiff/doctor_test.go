package main_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ddiff/restore/gpucheck"
	"ddiff/restore/onnx/install"
	"ddiff/restore/onnx/onnxtest"
)

func TestDoctor(t *testing.T) {
	t.Parallel()
	e := ddiff(t, "doctor")
	wantCode(t, e, 0)
	for _, name := range []string{"ddiff", "system", "processor", "memory", "ONNX Runtime", "provider cpu", "cache", "temporary files"} {
		if !strings.Contains(e.stdout, "ok       "+name) {
			t.Errorf("no line reports %s as ok\n%v", name, e)
		}
	}
	for _, name := range []string{"provider cuda", "provider webgpu", "Vulkan"} {
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
	if len(all.Findings) < 10 {
		t.Errorf("%d findings", len(all.Findings))
	}
	for _, f := range all.Findings {
		if f.Name == "" || f.Detail == "" || f.Status != "ok" && (f.Status != "missing" || f.Remedy == "") {
			t.Errorf("finding %+v is neither ok nor missing with a remedy", f)
		}
	}
}

// TestDoctorWithoutRuntime: doctor fails without ONNX Runtime and still prints all findings.
func TestDoctorWithoutRuntime(t *testing.T) {
	t.Parallel()
	e := ddiff(t, "doctor", "--onnxruntime", "/nowhere")
	wantCode(t, e, 4)
	if !strings.Contains(e.stdout, "missing  ONNX Runtime") || !strings.Contains(e.stdout, "run: ddiff runtime install") || !strings.Contains(e.stdout, "temporary files") {
		t.Errorf("want the missing library, the remedy and the other findings\n%v", e)
	}
}

func TestGPUCheckWithoutGPU(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/nvidiactl"); err == nil {
		t.Skip("this machine has an NVIDIA driver; run make gpu-check")
	}
	e := ddiff(t, "doctor", "--gpu", "--images", filepath.Dir(photograph("chelsea")))
	wantCode(t, e, 8)
	lines := strings.Split(strings.TrimSpace(e.stdout), "\n")
	if len(lines) != 2 || lines[1] != "gpu=absent" {
		t.Fatalf("want one line and then gpu=absent\n%v", e)
	}
	for _, part := range []string{"no NVIDIA driver", "run this where there is"} {
		if !strings.Contains(lines[0], part) {
			t.Errorf("%q does not contain %q", lines[0], part)
		}
	}
}

func TestGPUCheckFlags(t *testing.T) {
	t.Parallel()
	images := filepath.Dir(photograph("chelsea"))
	for _, c := range []struct {
		part string
		args []string
	}{
		{"--images", []string{"--images", t.TempDir()}},
		{"Device", []string{"--images", images, "--device", "auto"}},
		{"Batches", []string{"--images", images, "--batches", "4,1"}},
		{"Only", []string{"--images", images, "--only", "everything"}},
	} {
		e := ddiff(t, append([]string{"doctor", "--gpu"}, c.args...)...)
		wantCode(t, e, 2)
		wantMessage(t, e, c.part)
	}
}

// checkDevice runs a check of a device and reads its report. It has a time limit of its own, because shader compilation
// is slow on a busy machine.
func checkDevice(t *testing.T, out string, args ...string) (ended, gpucheck.Report) {
	t.Helper()
	lib, err := library()
	must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 9*time.Minute)
	t.Cleanup(cancel)
	args = append([]string{"doctor", "--gpu", "--quick", "--images", filepath.Dir(photograph("chelsea")), "--out", out}, args...)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(environment(), install.EnvVar+"="+lib.Path)
	e := end(t, cmd)
	var r gpucheck.Report
	if e.code != 8 {
		must(t, json.Unmarshal(read(t, filepath.Join(out, "gpu-check.json")), &r))
	}
	return e, r
}

// TestGPUCheckOnCPU runs the whole check with small settings and the CPU as the device.
func TestGPUCheckOnCPU(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	e, r := checkDevice(t, out, "--device", "cpu", "--task", "super_resolution,motion_deblur")
	wantCode(t, e, 0)
	if r.Schema != gpucheck.Schema || r.Time.IsZero() || r.Program == "" || r.Machine.Cores < 1 || r.Machine.MemoryMiB < 1 {
		t.Errorf("report of schema %d at %v by %q on %+v", r.Schema, r.Time, r.Program, r.Machine)
	}
	if len(r.Sections) != len(gpucheck.Sections()) || len(r.Failed()) > 0 {
		t.Errorf("sections %+v", r.Sections)
	}
	for _, s := range r.Sections {
		if s.Status != gpucheck.StatusOK {
			t.Errorf("section %s is %s: %s", s.Name, s.Status, s.Detail)
		}
	}
	if r.Provider == nil || r.Provider.Name != "cpu" || r.Provider.Library == "" || len(r.Network) != 4 || len(r.Tasks) != 2 {
		t.Fatalf("provider %+v, network %+v, tasks %+v", r.Provider, r.Network, r.Tasks)
	}
	// Two networks, two precisions, two batch sizes.
	if len(r.Speed) != 8 {
		t.Fatalf("%d timings, want 8", len(r.Speed))
	}
	for _, s := range r.Speed {
		if s.Error != "" || !(s.NetworkMS > 0) || !(s.StepMS > 0) || !(s.Share > 0) || s.MemoryMiB <= 0 {
			t.Errorf("timing %+v", s)
		}
	}
	if r.Process == nil || r.Process.DrainExit != 0 || !r.Process.Restarted {
		t.Errorf("process %+v", r.Process)
	}
	wantLastLine(t, e, r, "device=cpu provider=cpu parity_max=0.00e+00 tf32_psnr=skipped fp16_psnr=")
}

// TestGPUCheckOnWebGPU restores on a software implementation of a GPU.
func TestGPUCheckOnWebGPU(t *testing.T) {
	must(t, onnxtest.SoftwareVulkan())
	e, r := checkDevice(t, t.TempDir(), "--device", "webgpu", "--task", "super_resolution", "--only", "tasks", "--size", "16", "--steps", "8")
	if e.code == 8 {
		t.Skipf("no WebGPU (install libvulkan1 and chromium-common for a software implementation): %s", strings.TrimSpace(e.stdout))
	}
	wantCode(t, e, 0)
	if r.Provider == nil || r.Provider.Name != "webgpu" || len(r.Tasks) != 1 {
		t.Fatalf("provider %+v, tasks %+v", r.Provider, r.Tasks)
	}
	// Different arithmetic gives a difference within the bound.
	if d := r.Tasks[0].StepMaxAbs; !(d > 0 && d < 1e-3) {
		t.Errorf("difference after one step %g", d)
	}
	wantLastLine(t, e, r, "device=webgpu provider=webgpu parity_max=")
}

// wantLastLine checks the summary line of a report.
func wantLastLine(t *testing.T, e ended, r gpucheck.Report, begin string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(e.stdout), "\n")
	if last := lines[len(lines)-1]; last != r.Line() || !strings.HasPrefix(last, begin) {
		t.Errorf("last line %q, want the report's line %q\n%v", last, r.Line(), e)
	}
}
