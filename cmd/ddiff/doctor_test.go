package main_test

import (
	"encoding/json"
	"strings"
	"testing"
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
