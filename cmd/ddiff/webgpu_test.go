package main_test

import (
	"path/filepath"
	"testing"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/item"
)

// TestWebGPU runs a campaign on a device other than the CPU: the result records the device, and the images agree with
// those of the CPU.
func TestWebGPU(t *testing.T) {
	onnxtest.WebGPU(t) // or skip
	prior := filepath.Join(t.TempDir(), "tiny.onnx")
	writePrior(t, prior, 3, card(3))
	run := func(args ...string) (string, map[string]item.Result) {
		out := tiny(t, append([]string{
			"--images", photographs(t, "chelsea", "coffee"), "--task", "inpaint_random,super_resolution", "--prior", prior,
		}, args...)...)
		return out, wantItems(t, out, 4)
	}
	there, gpu := run("--device", "webgpu")
	here, cpu := run("--device", "cpu")
	for id, r := range gpu {
		rt := r.Runtime
		if rt.Provider != "webgpu" || rt.Device != "webgpu:0" || rt.Precision != "float32" ||
			rt.Options["session.disable_cpu_ep_fallback"] != "1" || rt.Options["webgpu.enableInt64"] != "1" {
			t.Errorf("item %s was computed by %+v", r.Item.Name, rt)
		}
		was := cpu[id].Runtime
		if was.Provider != "cpu" || was.Device != "" || was.Options["session.disable_cpu_ep_fallback"] != "" {
			t.Errorf("item %s was computed by %+v", r.Item.Name, was)
		}
		a, b := decode(t, read(t, file(there, id, item.FileRestored))), decode(t, read(t, file(here, id, item.FileRestored)))
		for y := range a.Bounds().Dy() {
			for x := range a.Bounds().Dx() {
				ra, ga, ba, _ := a.At(x, y).RGBA()
				rb, gb, bb, _ := b.At(x, y).RGBA()
				for k, v := range []uint32{ra, ga, ba} {
					if d := int(v>>8) - int([]uint32{rb, gb, bb}[k]>>8); d < -1 || d > 1 {
						t.Fatalf("item %s: pixel %d, %d differs by %d grey levels", r.Item.Name, x, y, d)
					}
				}
			}
		}
	}

	// The passport suffices to make the image again.
	for id := range gpu {
		e := ddiff(t, "verify", filepath.Dir(file(there, id, item.FileResult)))
		wantCode(t, e, 0)
		c, _ := replay(t, 0, filepath.Dir(file(there, id, item.FileResult)), "--prior", prior, "--device", "webgpu", "--threads", "1")
		if c.verdict == "different" {
			t.Errorf("replayed: %+v", c)
		}
		break
	}
}
