package main_test

import (
	"archive/tar"
	"bytes"
	"encoding/csv"
	"fmt"
	"image/color"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/parquet-go/parquet-go"

	"ddiff/internal/s3test"
	"ddiff/manifest"
	"ddiff/storage"
)

// oddInput is a file of an odd collection: good ones are restored, others are named with a reason.
type oddInput struct {
	name string
	data []byte
	good bool
}

// oddCollection is what people have in one folder. Names in folders are those of the folders below it.
func oddCollection(t *testing.T) []oddInput {
	photo := func(shade uint8) []byte {
		return drawn(t, 32, 32, func(x, y int) color.NRGBA {
			return color.NRGBA{shade + uint8(3*x), uint8(90 + 2*y), uint8(120 + x + y), 255}
		})
	}
	all := []oddInput{{"cut.png", photo(9)[:100], false}, {"notes.txt", []byte("text"), false}, {".hidden.png", photo(60), false}, {".hid/in.png", photo(60), false}}
	for i, name := range []string{
		"a.png", "B.PNG", "1.1.png", "1.2.png", "caf\u00e9.png", "cafe\u0301.png", "new\nline.png", "tea, {hot} [1] #%.png", strings.Repeat("x", 120) + ".png", "sub/A/x.png", "sub/a/x.png",
	} {
		all = append(all, oddInput{name, photo(uint8(i)), true})
	}
	for i, name := range []string{"DSC_1.JPG", "dsc_1.jpg"} {
		all = append(all, oddInput{name, asJPEG(t, photo(uint8(60+10*i)), 95), true})
	}
	for _, u := range unfits(t) {
		if u.task == "hdr" && manifest.IsImage(u.file) && u.file != "dot.png" { // a run enlarges it
			all = append(all, oddInput{u.file, u.data, false})
		}
	}
	return all
}

// plantOdd writes the collection, and what only a folder can have.
func plantOdd(t *testing.T, all []oddInput) (dir string, more []oddInput) {
	dir = t.TempDir()
	for _, in := range all {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, in.name)), 0o755))
		write(t, filepath.Join(dir, in.name), in.data)
	}
	must(t, os.Symlink("nowhere", filepath.Join(dir, "gone.png")))
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe.png"), 0o600))
	must(t, os.MkdirAll(filepath.Join(dir, "old", ".ddiff"), 0o755))
	must(t, os.MkdirAll(filepath.Join(dir, "old", "items"), 0o755))
	write(t, filepath.Join(dir, "old", ".ddiff", "lock"), nil)
	write(t, filepath.Join(dir, "old", "items", "b.png"), all[0].data)
	return dir, append(slices.Clone(all), oddInput{name: "gone.png"}, oddInput{name: "pipe.png"}, oddInput{name: "old"})
}

// door is a way to give a collection to the program: words of a command, or a program, and the inputs that come through it.
type door struct {
	name   string
	inputs []oddInput
	cmd    func(more ...string) *exec.Cmd
}

// edgeDoors are all doors.
func edgeDoors(t *testing.T, server *s3test.Server) (doors []door) {
	all := oddCollection(t)
	prior := filepath.Join(t.TempDir(), "tiny.onnx")
	writePrior(t, prior, 3, card(3))
	settings := []string{"--task", "denoise", "--sigma", "0.05", "--steps", "3", "--threads", "1", "--prior", prior}
	add := func(name string, inputs []oddInput, words ...string) *door {
		out := filepath.Join(t.TempDir(), "out")
		doors = append(doors, door{name, inputs, func(more ...string) *exec.Cmd {
			return command(t, slices.Concat(words, settings, []string{"--out", out}, more)...)
		}})
		return &doors[len(doors)-1]
	}
	in := func(dir string, inputs []oddInput) (paths []string) {
		for _, in := range inputs {
			paths = append(paths, filepath.Join(dir, in.name))
		}
		return paths
	}
	top := func(inputs []oddInput) []oddInput { // as a folder that is not read deeper shows them
		var out []oddInput
		for _, in := range inputs {
			if first, _, deeper := strings.Cut(in.name, "/"); deeper {
				in = oddInput{name: first}
			}
			if !slices.ContainsFunc(out, func(o oddInput) bool { return o.name == in.name }) {
				out = append(out, in)
			}
		}
		return out
	}
	files := slices.DeleteFunc(slices.Clone(all), func(in oddInput) bool { return strings.HasPrefix(in.name, ".") })
	// The names of restored pictures differ, so that each door has a folder of its own.
	dir, more := plantOdd(t, all)
	add("restore FILES", append(files, oddInput{name: "gone.png"}, oddInput{name: "missing.png"}), slices.Concat([]string{"restore"}, in(dir, files), []string{filepath.Join(dir, "gone.png"), filepath.Join(dir, "missing.png")})...)
	add("restore FOLDER", top(more), "restore", dir)
	add("restore -r", replaced(more, "old", "items"), "restore", "-r", dir)
	add("run FILES", append(files, oddInput{name: "gone.png"}, oddInput{name: "missing.png"}), slices.Concat([]string{"run", "--size", "32"}, in(dir, files), []string{filepath.Join(dir, "gone.png"), filepath.Join(dir, "missing.png")})...)
	add("run FOLDER", top(more), "run", "--size", "32", dir)
	add("run --recursive", replaced(more, "old", "items"), "run", "--size", "32", recursive(t, dir))
	add("run GLOB", top(more), "run", "--size", "32", dir+"/*")

	var list bytes.Buffer
	w := csv.NewWriter(&list)
	must(t, w.Write([]string{"image"}))
	oneLine := slices.DeleteFunc(slices.Clone(all), func(in oddInput) bool { return strings.Contains(in.name, "\n") }) // lists have a row in each line, and the store refuses the name
	listed := append(slices.Clone(oneLine), oddInput{name: "gone.png"}, oddInput{name: "missing.png"})
	for i, in := range listed {
		must(t, w.Write([]string{in.name}))
		listed[i].good = in.good || strings.HasPrefix(in.name, ".") // it is meant
	}
	w.Flush()
	write(t, filepath.Join(dir, "list.csv"), list.Bytes())
	add("run LIST", listed, "run", "--size", "32", filepath.Join(dir, "list.csv"))

	elsewhere := t.TempDir()
	var archive bytes.Buffer
	z := tar.NewWriter(&archive)
	for _, in := range all {
		must(t, z.WriteHeader(&tar.Header{Name: in.name, Mode: 0o644, Size: int64(len(in.data)), Format: tar.FormatPAX}))
		_, err := z.Write(in.data)
		must(t, err)
	}
	must(t, z.WriteHeader(&tar.Header{Name: "gone.png", Typeflag: tar.TypeSymlink, Linkname: "nowhere"}))
	must(t, z.Close())
	write(t, filepath.Join(elsewhere, "s.tar"), archive.Bytes())
	add("run TAR", append(slices.Clone(all), oddInput{name: "gone.png"}), "run", "--size", "32", filepath.Join(elsewhere, "s.tar"))

	cells, rows := make([]photoRow, len(all)), slices.Clone(all)
	for i, in := range all {
		cells[i].Image.Bytes, cells[i].Image.Path = in.data, in.name
		rows[i].good = in.good || strings.HasPrefix(in.name, ".")
	}
	var table bytes.Buffer
	must(t, parquet.Write(&table, cells))
	write(t, filepath.Join(elsewhere, "p.parquet"), table.Bytes())
	add("run PARQUET", rows, "run", "--size", "32", filepath.Join(elsewhere, "p.parquet"))

	bucket := server.Bucket(t)
	store, err := storage.OpenS3(t.Context(), server.Config(bucket))
	must(t, err)
	defer store.Close()
	for _, in := range oneLine {
		must(t, store.Put(t.Context(), "in/"+in.name, in.data))
	}
	remote := add("run S3", oneLine, "run", "--size", "32", "--allow-endpoint", server.Endpoint, "s3://"+bucket+"/in/?path_style=true&endpoint="+url.QueryEscape(server.Endpoint))
	local := remote.cmd
	remote.cmd = func(more ...string) *exec.Cmd {
		cmd := local(more...)
		cmd.Env = append(cmd.Env, "AWS_ACCESS_KEY_ID="+server.AccessKey, "AWS_SECRET_ACCESS_KEY="+server.SecretKey)
		return cmd
	}

	python := func(name, script string, inputs []oddInput, args ...string) {
		folder, text := pythonPackage(t), filepath.Join(t.TempDir(), "door.py")
		write(t, text, []byte(script))
		doors = append(doors, door{name, inputs, func(...string) *exec.Cmd {
			cmd := exec.Command(pythonProgram(), slices.Concat([]string{text, prior}, args)...)
			cmd.Env = slices.Concat(command(t).Env, []string{"PYTHONPATH=" + folder})
			return cmd
		}})
	}
	python("Python restore", `
import sys, ddiff
with ddiff.Session(prior=sys.argv[1], device="cpu", threads=1) as s:
    try:
        s.restore(sys.argv[2:], "denoise", sigma=0.05, steps=3)
    except ddiff.RestoreError as e:
        print(e, f"done={sum(r is not None for r in e.results)}", *e.problems.values(), sep="\n")
`, append(files, oddInput{name: "gone.png"}), append(in(dir, files), filepath.Join(dir, "gone.png"))...)
	python("Python run", `
import sys, ddiff
e = ddiff.run(sys.argv[2], "denoise", sigma=0.05, steps=3, size=32, prior=sys.argv[1], device="cpu", out=sys.argv[3])
t = e.table()
print(f"done={(t.outcome == 'done').sum()}", *(t.image + ": " + t.reason)[t.outcome != "done"], *e.left_out, sep="\n")
`, top(more), dir, filepath.Join(t.TempDir(), "out"))
	return doors
}

// replaced returns inputs with another name in place of one.
func replaced(inputs []oddInput, old, name string) []oddInput {
	out := slices.Clone(inputs)
	out[slices.IndexFunc(out, func(in oddInput) bool { return in.name == old })].name = name
	return out
}

// recursive returns a campaign file for a folder and the folders below it.
func recursive(t *testing.T, dir string) string {
	file := filepath.Join(t.TempDir(), "c.yaml")
	write(t, file, fmt.Appendf(nil, "dataset: {path: %q, recursive: true, size: 32}\ntasks: [denoise]\n", dir))
	return file
}

// pythonProgram is the interpreter of the Python tests.
func pythonProgram() string {
	if p := os.Getenv("PYTHON"); p != "" {
		return p
	}
	return "/usr/bin/python3"
}

// pythonPackage returns a folder with the package and the program of this test.
func pythonPackage(t *testing.T) string {
	folder := t.TempDir()
	must(t, os.CopyFS(filepath.Join(folder, "ddiff"), os.DirFS(filepath.Join("..", "..", "python", "src", "ddiff"))))
	must(t, os.MkdirAll(filepath.Join(folder, "ddiff", "bin"), 0o755))
	must(t, os.Symlink(program, filepath.Join(folder, "ddiff", "bin", "ddiff")))
	return folder
}

// TestEdges gives one odd collection to every door: no input stops the others, and each that is left out is named with a reason, in JSON too, and counted with -q. `make edges` prints the counts.
func TestEdges(t *testing.T) {
	skipLong(t)
	t.Parallel()
	doors := edgeDoors(t, s3test.Start(t, s3test.Options{}))
	var inputs, stopped, unnamed atomic.Int64
	done, reason := regexp.MustCompile(`(?m)(?:^|")done"?[=:](\d+)`), regexp.MustCompile(`: |"reason"`)
	t.Run("door", func(t *testing.T) {
		for _, d := range doors {
			t.Run(d.name, func(t *testing.T) {
				t.Parallel()
				good := 0
				for _, in := range d.inputs {
					if in.good {
						good++
					}
				}
				inputs.Add(int64(len(d.inputs)))
				codes, modes := 3, [][]string{{}, {"--json"}, {"--quiet"}}
				if strings.HasPrefix(d.name, "Python") {
					codes, modes = 0, modes[:1]
				}
				for _, mode := range modes { // of the later ones the good inputs are restored already
					e := end(t, d.cmd(mode...))
					found := done.FindStringSubmatch(e.stdout)
					if e.code != codes || found == nil || len(mode) == 0 && found[1] != strconv.Itoa(good) {
						stopped.Add(1)
						t.Errorf("%s: want done=%d\n%v", mode, good, e)
					}
					skipped := 0 // as the lines count
					for _, m := range regexp.MustCompile(`(?m)^skipped (\d+)`).FindAllStringSubmatch(e.stderr, -1) {
						skipped += atoi(t, m[1])
					}
					for _, in := range d.inputs {
						if in.good {
							continue
						}
						name := strings.ReplaceAll(path.Base(in.name), "\n", "\uFFFD")
						named := slices.ContainsFunc(strings.Split(e.stdout+e.stderr, "\n"), func(line string) bool {
							return strings.Contains(line, strings.TrimSuffix(name, path.Ext(name))) && reason.MatchString(line)
						})
						if !named && skipped == 0 {
							unnamed.Add(1)
							t.Errorf("%s: %s is not named\n%v", mode, in.name, e)
						} else if !named {
							skipped--
						}
					}
				}
			})
		}
	})
	t.Logf("doors=%d inputs=%d stopped=%d unnamed=%d", len(doors), inputs.Load(), stopped.Load(), unnamed.Load())
}
