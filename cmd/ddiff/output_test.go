package main_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ddiff/internal/regular"
	"ddiff/restore/item"
)

// items reads every finished item of an output, by identity. It checks that a result parses and that its files match
// their digests.
func items(t *testing.T, out string) map[string]item.Result {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(out, "items"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	found := map[string]item.Result{}
	for _, e := range entries {
		data, err := os.ReadFile(file(out, e.Name(), item.FileResult))
		if errors.Is(err, fs.ErrNotExist) {
			continue // not finished
		}
		must(t, err)
		var r item.Result
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatalf("result of item %s: %v", e.Name(), err)
		}
		if r.Item.ID != e.Name() || r.Outcome != item.OutcomeDone || len(r.Artifacts) == 0 {
			t.Errorf("result of item %s is %s, outcome %s, %d artifacts", e.Name(), r.Item.ID, r.Outcome, len(r.Artifacts))
		}
		for name, want := range r.Artifacts {
			if got := regular.SHA256(read(t, file(out, e.Name(), name))); got != want {
				t.Errorf("item %s: %s has the digest %s, its result says %s", e.Name(), name, got, want)
			}
		}
		found[e.Name()] = r
	}
	return found
}

func file(out, id, name string) string {
	return filepath.Join(out, filepath.FromSlash(item.Key(id, name)))
}

// wantItems is items, and checks their number.
func wantItems(t *testing.T, out string, n int) map[string]item.Result {
	t.Helper()
	found := items(t, out)
	if len(found) != n {
		t.Fatalf("%s has %d finished items, want %d", out, len(found), n)
	}
	return found
}

// wantSame checks that the items of got are those of want: measurements bit for bit, restored images up to one grey
// level.
func wantSame(t *testing.T, got, want string) {
	t.Helper()
	reference := items(t, want)
	found := items(t, got)
	if len(found) == 0 {
		t.Fatalf("%s has no items", got)
	}
	for id, r := range found {
		ref, ok := reference[id]
		if !ok {
			t.Errorf("item %s (%s, %s) is not in %s", id, r.Item.Name, r.Item.Task, want)
			continue
		}
		for name := range ref.Artifacts {
			a, b := read(t, file(got, id, name)), read(t, file(want, id, name))
			switch name {
			case item.FileTrace:
			case item.FileRestored:
				if d := levels(t, a, b); d > 1 {
					t.Errorf("item %s (%s, %s): restored images differ by %d grey levels", id, r.Item.Name, r.Item.Task, d)
				}
			default:
				if !bytes.Equal(a, b) {
					t.Errorf("item %s (%s, %s): %s differs", id, r.Item.Name, r.Item.Task, name)
				}
			}
		}
		wantSameTrace(t, trace(t, got, id), trace(t, want, id))
	}
}

// wantSameTrace checks that two runs made the same steps.
func wantSameTrace(t *testing.T, got, want item.Trace) {
	t.Helper()
	if len(got["timestep"]) != len(want["timestep"]) || len(got["data_norm"]) != len(want["timestep"]) || len(got["dual_norm"]) != len(want["timestep"]) {
		t.Fatalf("trace of %d steps, want %d", len(got["timestep"]), len(want["timestep"]))
	}
	for i := range want["timestep"] {
		for _, scalar := range []string{"timestep", "gamma", "rho"} { // a step has gamma or rho
			if w := want[scalar]; len(w) > i && (len(got[scalar]) != len(w) || got[scalar][i] != w[i]) {
				t.Fatalf("step %d has the %s of %v, want that of %v", i+1, scalar, got[scalar], w)
			}
		}
		if d := got["data_norm"][i]/want["data_norm"][i] - 1; !(d <= 0.01) || !(d >= -0.01) {
			t.Fatalf("step %d has the data norm %g, want %g", i+1, got["data_norm"][i], want["data_norm"][i])
		}
	}
}

func trace(t *testing.T, out, id string) item.Trace {
	t.Helper()
	var tr item.Trace
	must(t, json.Unmarshal(read(t, file(out, id, item.FileTrace)), &tr))
	return tr
}

// levels returns the largest difference of two PNGs of one size in 8-bit grey levels.
func levels(t *testing.T, a, b []byte) int {
	t.Helper()
	x, y := decode(t, a), decode(t, b)
	if x.Bounds() != y.Bounds() {
		t.Fatalf("images of %v and %v", x.Bounds(), y.Bounds())
	}
	largest := 0
	for i := x.Bounds().Min.Y; i < x.Bounds().Max.Y; i++ {
		for j := x.Bounds().Min.X; j < x.Bounds().Max.X; j++ {
			r, g, b, _ := x.At(j, i).RGBA()
			r2, g2, b2, _ := y.At(j, i).RGBA()
			for _, d := range []int{int(r>>8) - int(r2>>8), int(g>>8) - int(g2>>8), int(b>>8) - int(b2>>8)} {
				largest = max(largest, d, -d)
			}
		}
	}
	return largest
}

func decode(t *testing.T, data []byte) image.Image {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(data))
	must(t, err)
	return img
}

// stamp is the state of a file.
type stamp struct {
	digest   [sha256.Size]byte
	modified time.Time
}

// stamps returns the states of all files of items.
func stamps(t *testing.T, out string) map[string]stamp {
	t.Helper()
	found := map[string]stamp{}
	must(t, filepath.WalkDir(filepath.Join(out, "items"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		found[path] = stamp{sha256.Sum256(read(t, path)), info.ModTime()}
		return nil
	}))
	return found
}

// files lists the regular files below a directory, relative to it.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		found = append(found, rel)
		return err
	}))
	return found
}

// TestLostOutput: a command whose output is lost ends with an error.
func TestLostOutput(t *testing.T) {
	t.Parallel()
	out := tiny(t, "--images", photograph("coffee"), "--task", "hdr")
	picture := filepath.Join(t.TempDir(), "a.png")
	write(t, picture, grey(16))
	for _, args := range [][]string{
		{"version"}, {"--version"}, {"help"}, {"run", "--help"}, {"verify", out}, {"verify", out, "--json"}, {"methods"}, {"tasks"},
		{"replay", filepath.Join(folderOf(t, out, "hdr"), "restored.png"), "--threads", "1"}, quick(picture, "--json"),
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			must(t, err)
			defer full.Close()
			cmd := command(t, args...)
			var stderr strings.Builder
			cmd.Stdout, cmd.Stderr = full, &stderr
			_ = cmd.Run() // the exit code follows
			if e := (ended{cmd.ProcessState.ExitCode(), "", stderr.String()}); e.code != 1 {
				t.Errorf("%q: exit code %d, want 1\n%v", args, e.code, e)
			} else {
				wantMessage(t, e, "ddiff: ", "no space left on device")
			}
		})
	}
}

// TestQuit: SIGQUIT prints the stacks, and its exit code is that of no other end.
func TestQuit(t *testing.T) {
	t.Parallel()
	p := begin(t, "--images", photographs(t, "coffee"), "--task", "hdr", "--steps", "400", "--out", filepath.Join(t.TempDir(), "out"))
	p.wait(t, &p.stdout, steps, 1)
	p.signal(t, syscall.SIGQUIT)
	e := p.end()
	wantCode(t, e, 131)
	wantMessage(t, e, "goroutine ", "[running]")
}

// TestEmptyFlags: an empty value, as of an unset variable, is refused and never the default.
func TestEmptyFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"run", "x.png", "--task", ""}, {"run", "x.png", "--task", "hdr,"}, {"run", "x.png", "--task", "hdr", "--precision", ""}, {"run", "x.png", "--task", "hdr", "--prior="},
		{"worker", "--allow-host", ""}, {"worker", "--allow-endpoint", ""}, {"worker", "--nats", " "}, {"run", "x.png", "--task", "hdr", "--out", ""},
	} {
		e := ddiff(t, args...)
		wantCode(t, e, 2)
		wantMessage(t, e, "ddiff: "+args[0]+": --", "is empty", "is a variable unset?")
	}
}
