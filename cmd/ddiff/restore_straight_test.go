package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ddiff/internal/restore/passport"
)

// TestRestoreIsThatOfCampaigns: without --results a picture has the identity, the pixels, the arrays, the scores and the warnings that it has with them.
func TestRestoreIsThatOfCampaigns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.png"), deepGrey(t))
	write(t, filepath.Join(dir, "b.jpg"), jpegFile(t, 40))
	write(t, filepath.Join(dir, "y.npy"), array(t, -1, 1, 3, 16, 16))
	write(t, filepath.Join(dir, "mask.npy"), array(t, 1, 1, 12, 18))
	for name, args := range map[string][]string{
		"a": {"a.png", "--task", "super_resolution", "--param", "factor=2", "--seed", "3"},
		"b": {"b.jpg", "--task", "jpeg"},
		"y": {"y.npy", "--task", "hdr", "--measurement-range", "-2,2", "--photons", "50"},
		"m": {"a.png", "--task", "inpaint", "--mask", filepath.Join(dir, "mask.npy"), "--sigma", "0.01", "--tile", "16", "--overlap", "0"},
		"e": {"a.png", "--task", "gaussian_deblur", "--param", "std=3", "--precision", "float32", "--method", "diffpir"},
	} {
		var found []passport.Passport
		for _, more := range [][]string{nil, {"--results", filepath.Join(dir, name+"-results")}} {
			into := filepath.Join(dir, name+"-new")
			call := append([]string{"restore", filepath.Join(dir, args[0]), "--steps", "3", "--threads", "1", "--force", "--device", "cpu", "--out", into}, args[1:]...)
			wantCode(t, ddiff(t, append(call, more...)...), 0)
			extension := filepath.Ext(args[0])
			file := strings.TrimSuffix(args[0], extension) + ".restored" + strings.Replace(extension, ".npy", ".png", 1)
			p, err := passport.Read(read(t, filepath.Join(into, file)))
			must(t, err)
			p.Worker, p.Attempt, p.TraceID = "", 0, ""
			found = append(found, p)
		}
		if !reflect.DeepEqual(found[0], found[1]) {
			t.Errorf("%s: the passports differ:\n%+v\n%+v", name, found[0], found[1])
		}
	}
}

// TestRestoreCounts counts what the restoration of one picture runs, and prints it.
func TestRestoreCounts(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program with coverage")
	}
	t.Parallel()
	dir := t.TempDir()
	program, counters := filepath.Join(dir, "ddiff"), filepath.Join(dir, "counters")
	must(t, os.Mkdir(counters, 0o755))
	goTool := func(args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go %s: %v: %s", args[0], err, stderr.String())
		}
		return out
	}
	// Without optimisation, which takes two fifths of the time of the compilation.
	goTool("build", "-cover", "-coverpkg=ddiff/...", "-gcflags=ddiff/...=-N -l", "-ldflags=-s -w", "-o", program, ".")
	write(t, filepath.Join(dir, "a.png"), grey(64))
	cmd := command(t, "restore", filepath.Join(dir, "a.png"), "--task", "gaussian_deblur", "--param", "std=2", "--steps", "8")
	cmd.Env = append(cmd.Env, "GOCOVERDIR="+counters)
	cmd.Path = program
	trace := filepath.Join(dir, "trace")
	if strace, err := exec.LookPath("strace"); err == nil {
		cmd.Path, cmd.Args = strace, append([]string{strace, "-f", "-o", trace, "-e", "trace=fsync,fdatasync,sync,syncfs", program}, cmd.Args[1:]...)
	}
	wantCode(t, end(t, cmd), 0)
	functions, packages := 0, map[string]bool{}
	for line := range strings.Lines(string(goTool("tool", "covdata", "func", "-i="+counters))) {
		fields := strings.Fields(line)
		if file, _, ok := strings.Cut(fields[0], ":"); ok && fields[len(fields)-1] != "0.0%" {
			functions++
			packages[file[:strings.LastIndex(file, "/")]] = true
		}
	}
	syncs := strings.Count(string(readIf(t, trace)), "sync(")
	t.Logf("functions=%d packages=%d syncs=%d", functions, len(packages), syncs)
	// A little more than today: a run counted 994, and runs beside other work some ten more.
	if functions == 0 || functions > 1065 || len(packages) > 35 || syncs > 2 {
		t.Errorf("functions=%d packages=%d syncs=%d, want at most 1065, 35 and 2, of the file and its folder", functions, len(packages), syncs)
	}
}

// readIf reads a file, or nothing where it does not exist.
func readIf(t *testing.T, path string) []byte {
	t.Helper()
	if _, err := os.Stat(path); os.IsNotExist(err) {
		t.Log("syncs were not counted: there is no strace")
		return nil
	}
	return read(t, path)
}
