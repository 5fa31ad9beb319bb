package main_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"ddiff/internal/restore/raster"
)

// TestPlacement runs one campaign with settings that must not change results.
func TestPlacement(t *testing.T) {
	t.Parallel()
	dir := photographs(t, "chelsea", "coffee", "rocket")
	const tasks, others = "inpaint_random,phase_retrieval", "phase_retrieval,inpaint_random"
	args := func(images, tasks, out string, more ...string) []string {
		return append([]string{"--images", images, "--task", tasks, "--size", "32", "--steps", "8", "--seed", "5", "--out", out}, more...)
	}
	reference := filepath.Join(t.TempDir(), "reference")
	e := restore(t, args(dir, tasks, reference, "--batch", "1")...)
	wantCode(t, e, 0)
	wantCounts(t, e, 6, 0, 0, reference)

	for _, c := range []struct {
		name   string
		images string
		tasks  string
		n      int
		flags  []string
	}{
		{"batches of two, other order of tasks", dir, others, 6, []string{"--batch", "2"}},
		{"streams", dir, tasks, 6, []string{"--batch", "4", "--threads", "4", "--streams", "3"}},
		{"the first image, other threads", dir, tasks, 2, []string{"--limit", "1", "--threads", "2"}},
		{"the last image alone, as a copy", photographs(t, "rocket"), tasks, 2, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "out")
			e := restore(t, args(c.images, c.tasks, out, c.flags...)...)
			wantCode(t, e, 0)
			wantCounts(t, e, c.n, 0, 0, out)
			wantItems(t, out, c.n)
			wantSame(t, out, reference)
		})
	}
	t.Run("in pieces", func(t *testing.T) {
		t.Parallel()
		out := filepath.Join(t.TempDir(), "out")
		for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGINT, syscall.SIGKILL} {
			p := begin(t, args(dir, tasks, out, "--batch", "1")...)
			p.wait(t, &p.stdout, steps, 1)
			p.signal(t, s)
			p.end()
		}
		e := restore(t, args(dir, tasks, out)...)
		wantCode(t, e, 0)
		wantCounts(t, e, 6, 0, 0, out)
		wantItems(t, out, 6)
		wantSame(t, out, reference)
	})
}

// TestOwnKernel: of two rows of gaussian_deblur, that with a kernel uses it, and that without is the item of a campaign without kernels.
// A method that needs a decomposition fails the row with a kernel only.
func TestOwnKernel(t *testing.T) {
	skipLong(t)
	t.Parallel()
	dir := t.TempDir()
	pixels := make([]float32, 3*16*16)
	for i := range pixels {
		pixels[i] = float32(i%7)/3 - 1
	}
	img, err := raster.EncodePNG(&raster.Image{Channels: 3, Height: 16, Width: 16, Pix: pixels})
	must(t, err)
	write(t, filepath.Join(dir, "a.png"), img)
	kernel, err := raster.EncodeNPY([]int{3, 3}, []float32{0, 0, 0, 0, 0, 1, 0, 0, 0}) // the image, moved by a pixel
	must(t, err)
	write(t, filepath.Join(dir, "k.npy"), kernel)
	write(t, filepath.Join(dir, "plain.csv"), []byte("image,name\na.png,plain\n"))
	write(t, filepath.Join(dir, "both.csv"), []byte("image,name,kernel\na.png,plain,\na.png,own,k.npy\n"))
	base := []string{"--task", "gaussian_deblur", "--size", "16", "--steps", "3", "--sigma", "0", "--threads", "1", "--quiet"}
	plain, both := filepath.Join(dir, "plain"), filepath.Join(dir, "both")
	wantCode(t, ddiff(t, append([]string{"run", filepath.Join(dir, "plain.csv"), "--out", plain}, base...)...), 0)
	wantCode(t, ddiff(t, append([]string{"run", filepath.Join(dir, "both.csv"), "--out", both}, base...)...), 0)
	found := wantItems(t, both, 2)
	for id, r := range wantItems(t, plain, 1) {
		same, ok := found[id]
		if !ok || same.Item.OwnKernel || same.Item.Params["std"] != 3 {
			t.Fatalf("the item without a kernel is not that of a campaign without kernels: %+v", same.Item)
		}
		for name, want := range r.Artifacts {
			if name != "restored.png" && name != "trace.json" && same.Artifacts[name] != want { // passport and times
				t.Errorf("%s differs beside a row with a kernel", name)
			}
		}
		delete(found, id)
	}
	for id, r := range found {
		if !r.Item.OwnKernel || r.Artifacts["kernel.npy"] == "" {
			t.Errorf("item %+v", r.Item)
		}
		if _, has := r.Item.Params["std"]; has {
			t.Error("the item has a standard deviation")
		}
		y, err := raster.DecodeNPY(read(t, file(both, id, "measurement.npy")))
		must(t, err)
		sharp, err := raster.Decode(img)
		must(t, err)
		for i, v := range y.Data {
			if i%16 == 15 {
				continue // the border is reflected
			}
			if d := v - sharp.Pix[i+1]; d > 1e-4 || d < -1e-4 {
				t.Fatalf("entry %d of the measurement is %g, want the pixel to its right, %g", i, v, sharp.Pix[i+1])
			}
		}
		wantCode(t, ddiff(t, "replay", filepath.Join(both, "items", id), "--threads", "1"), 0)
	}
	e := ddiff(t, append([]string{"run", filepath.Join(dir, "both.csv"), "--method", "ddrm", "--out", filepath.Join(dir, "ddrm")}, append(base, "--sigma", "0.05")...)...)
	wantCode(t, e, 3)
	wantMessage(t, e, "failed: own (gaussian_deblur)", "ddrm cannot restore task gaussian_deblur", "which a kernel from a file does not have")
	wantLine(t, e, "done=1 failed=1 dead=0")
	write(t, filepath.Join(dir, "std.csv"), []byte("image,kernel,param.std\na.png,k.npy,2\n"))
	e = ddiff(t, append([]string{"run", filepath.Join(dir, "std.csv"), "--out", filepath.Join(dir, "std")}, base...)...)
	wantCode(t, e, 3)
	wantMessage(t, e, "task gaussian_deblur with a kernel: wrong parameter std")
}
