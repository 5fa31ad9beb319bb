package main_test

import (
	"bytes"
	"encoding/json"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/regular"
	"ddiff/internal/report"
	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
)

// tiny restores the photographs of a directory with quick settings, at 32 pixels.
func tiny(t *testing.T, args ...string) (out string) {
	t.Helper()
	out = filepath.Join(t.TempDir(), "out")
	wantCode(t, restore(t, append([]string{"--size", "32", "--steps", "10", "--quiet", "--out", out}, args...)...), 0)
	return out
}

// edit replaces a part of a file.
func edit(t *testing.T, path, old, by string) {
	t.Helper()
	text := string(read(t, path))
	if !strings.Contains(text, old) {
		t.Fatalf("%s does not have %s:\n%.2000s", path, old, text)
	}
	write(t, path, []byte(strings.Replace(text, old, by, 1)))
}

// passportText returns the passport of a restored image.
func passportText(t *testing.T, path string) string {
	t.Helper()
	text, found, err := raster.PNGText(read(t, path), "ddiff")
	must(t, err)
	if !found {
		t.Fatalf("%s has no passport", path)
	}
	return text
}

// setPassport replaces the passport, with valid checksums.
func setPassport(t *testing.T, path, text string) {
	t.Helper()
	file, err := raster.SetPNGText(read(t, path), "ddiff", text)
	must(t, err)
	write(t, path, file)
}

// editPassport replaces a part of the passport.
func editPassport(t *testing.T, path, old, by string) {
	t.Helper()
	text := passportText(t, path)
	if !strings.Contains(text, old) {
		t.Fatalf("the passport does not have %s:\n%s", old, text)
	}
	setPassport(t, path, strings.Replace(text, old, by, 1))
}

// repaint changes the pixels of an image and keeps its passport.
func repaint(t *testing.T, path string, change func(img *raster.Image)) {
	t.Helper()
	text := passportText(t, path)
	img, err := raster.Decode(read(t, path))
	must(t, err)
	change(img)
	file, err := raster.EncodePNG(img)
	must(t, err)
	write(t, path, file)
	setPassport(t, path, text)
}

// encodeAgain changes the bytes of an image, not its pixels or passport, as another program would.
func encodeAgain(t *testing.T, path string) {
	t.Helper()
	before, text := read(t, path), passportText(t, path)
	var file bytes.Buffer
	must(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&file, decode(t, before)))
	write(t, path, file.Bytes())
	setPassport(t, path, text)
	if bytes.Equal(read(t, path), before) {
		t.Fatal("the file is the same as before")
	}
}

// flip flips one bit of a file, at an offset from its end.
func flip(t *testing.T, path string, fromEnd int) {
	t.Helper()
	data := bytes.Clone(read(t, path))
	data[len(data)-fromEnd] ^= 1
	write(t, path, data)
}

// folderOf returns the folder of the only item of a task.
func folderOf(t *testing.T, out, task string) string {
	t.Helper()
	for id, r := range items(t, out) {
		if r.Item.Task == task {
			return filepath.Dir(file(out, id, item.FileResult))
		}
	}
	t.Fatalf("%s has no item of %s", out, task)
	return ""
}

// TestVerifyTampering makes one change to an item at a time.
func TestVerifyTampering(t *testing.T) {
	t.Parallel()
	out := tiny(t, "--images", photograph("coffee"), "--task", "inpaint_random,hdr", "--seed", "7")
	const restored = "restored.png"
	in := func(dir, name string) string { return filepath.Join(dir, name) }
	for _, c := range []struct {
		name   string
		change func(t *testing.T, dir string)
		wrong  int        // problems, which are all in lines
		lines  [][]string // parts of lines
	}{
		{"nothing", func(*testing.T, string) {}, 0, [][]string{{restored + ": ok"}}},
		{
			"pixel", func(t *testing.T, dir string) {
				repaint(t, in(dir, restored), func(img *raster.Image) { img.Pix[100] -= 2. / 255 })
			}, 2,
			[][]string{{restored + ": pixels: have the SHA-256", "the image was changed; put the original back"}, {restored + ": file: has the SHA-256", "result.json says"}},
		},
		{
			"encoding", func(t *testing.T, dir string) { encodeAgain(t, in(dir, restored)) }, 1,
			[][]string{{restored + ": file: has the SHA-256"}},
		},
		{
			"seed in the passport", func(t *testing.T, dir string) { editPassport(t, in(dir, restored), `"seed":7`, `"seed":8`) }, 3,
			[][]string{{restored + ": item.id: is ", "what the passport describes has the identity"}, {"result.json: item.seed: is 7, the passport in restored.png says 8"}, {restored + ": file: "}},
		},
		{
			"worker in the passport", func(t *testing.T, dir string) {
				editPassport(t, in(dir, restored), `"worker":"embedded"`, `"worker":"somebody"`)
			}, 2,
			[][]string{{`result.json: worker: is "embedded", the passport in restored.png says "somebody"`}, {restored + ": file: "}},
		},
		{
			"score in the result", func(t *testing.T, dir string) { edit(t, in(dir, "result.json"), `"psnr": `, `"psnr": 1`) }, 1,
			[][]string{{"result.json: metrics.psnr: is 1", "one was changed"}},
		},
		{
			"method id left out of the result", func(t *testing.T, dir string) {
				edit(t, in(dir, "result.json"), `"ssim": "ssim@1"`, `"ssim2": "ssim@1"`)
			}, 2,
			[][]string{{`result.json: metric_ids.ssim: is nothing, the passport in restored.png says "ssim@1"`}, {`metric_ids.ssim2: is "ssim@1"`, "says nothing"}},
		},
		{
			"schema of the result", func(t *testing.T, dir string) { edit(t, in(dir, "result.json"), `"schema": 1`, `"schema": 0`) }, 1,
			[][]string{{"result.json: schema: is 0, this program reads 1"}},
		},
		{
			"outcome of the result", func(t *testing.T, dir string) {
				edit(t, in(dir, "result.json"), `"outcome": "done"`, `"outcome": "dead"`)
			}, 1,
			[][]string{{`result.json: outcome: is "dead" beside a restored image`}},
		},
		{
			"steps of the result", func(t *testing.T, dir string) {
				edit(t, in(dir, "result.json"), "\n  \"steps\": 10,", "\n  \"steps\": 9,")
			}, 1,
			[][]string{{"result.json: sha256: the file differs from its sha256", "put the original back"}},
		},
		{
			"seconds of the result", func(t *testing.T, dir string) { edit(t, in(dir, "result.json"), `"seconds": `, `"seconds": 1`) }, 1,
			[][]string{{"result.json: sha256: the file differs"}},
		},
		{
			"campaign of the item", func(t *testing.T, dir string) { edit(t, in(dir, "result.json"), `"campaign": "`, `"campaign": "x`) }, 1,
			[][]string{{"result.json: sha256: the file differs"}},
		},
		{
			"index of the item", func(t *testing.T, dir string) { edit(t, in(dir, "result.json"), `"index": `, `"index": 1`) }, 1,
			[][]string{{"result.json: sha256: the file differs"}},
		},
		{
			"no passport", func(t *testing.T, dir string) {
				img, err := raster.Decode(read(t, in(dir, restored)))
				must(t, err)
				file, err := raster.EncodePNG(img)
				must(t, err)
				write(t, in(dir, restored), file)
			}, 2,
			[][]string{{restored + ": passport: the file has none"}, {restored + ": file: "}},
		},
		{
			"a passport of a later version", func(t *testing.T, dir string) { setPassport(t, in(dir, restored), `{"schema":9}`) }, 2,
			[][]string{{restored + ": note: restored.png is not checked", "written by a newer version of ddiff: schema is 9, this version knows 1"}, {restored + ": file: "}},
		},
		{
			"a bit of the passport", func(t *testing.T, dir string) {
				edit(t, in(dir, restored), `"seed":7`, `"seed":8`) // and the checksum is wrong
			}, 3,
			[][]string{{restored + ": pixels: "}, {restored + `: passport: `, `the checksum of the chunk "iTXt" is wrong`}, {restored + ": file: "}},
		},
		{
			"the end of the image", func(t *testing.T, dir string) {
				data := read(t, in(dir, restored))
				write(t, in(dir, restored), data[:len(data)/2])
			}, 3,
			[][]string{{restored + ": pixels: "}, {restored + ": passport: ", "the file ends in the chunk"}, {restored + ": file: "}},
		},
		{
			"the image is missing", func(t *testing.T, dir string) { must(t, os.Remove(in(dir, restored))) }, 1,
			[][]string{{restored + ": file: is missing", "put the original back, or move the item's folder away and run its campaign again"}},
		},
		{
			"the result is no JSON", func(t *testing.T, dir string) { write(t, in(dir, "result.json"), []byte("{")) }, 1,
			[][]string{{"result.json: file: cannot be read", "move the item's folder away and run its campaign again"}},
		},
		{
			"measurement", func(t *testing.T, dir string) { flip(t, in(dir, "measurement.npy"), 1) }, 1,
			[][]string{{"measurement.npy: file: has the SHA-256", "it was changed"}},
		},
		{
			"mask", func(t *testing.T, dir string) { flip(t, in(dir, "mask.npy"), 9) }, 1,
			[][]string{{"mask.npy: file: has the SHA-256", "it was changed"}},
		},
		{
			"the truth is missing", func(t *testing.T, dir string) { must(t, os.Remove(in(dir, "truth.png"))) }, 1,
			[][]string{{"truth.png: file: is missing", "move the item's folder away and run its campaign again"}},
		},
		{
			"measurement with its digest", func(t *testing.T, dir string) {
				var r item.Result
				must(t, json.Unmarshal(read(t, in(dir, "result.json")), &r))
				edit(t, in(dir, "result.json"), r.Artifacts["measurement.npy"], r.Artifacts["truth.png"])
				copyFile(t, in(dir, "truth.png"), in(dir, "measurement.npy"))
			}, 1,
			[][]string{{"result.json: data.measurement.npy: is ", "the passport in restored.png says"}},
		},
		{
			"an artifact somewhere else", func(t *testing.T, dir string) {
				edit(t, in(dir, "result.json"), `"truth.png"`, `"../truth.png"`)
			}, 1,
			[][]string{{`result.json: artifacts: names "../truth.png", which is not a file beside it`}},
		},
		{
			"no artifacts", func(t *testing.T, dir string) {
				edit(t, in(dir, "result.json"), `"artifacts": `, `"others": `)
			}, 3,
			[][]string{{"result.json: artifacts: do not name restored.png"}, {"result.json: data.measurement.npy: is nothing"}, {"result.json: data.mask.npy: is nothing"}},
		},
		{
			"the files of another item", func(t *testing.T, dir string) {
				must(t, os.RemoveAll(dir))
				must(t, os.CopyFS(dir, os.DirFS(folderOf(t, filepath.Dir(filepath.Dir(dir)), "hdr"))))
			}, 1,
			[][]string{{restored + ": item.id: is ", "it belongs to another item"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			copied := filepath.Join(t.TempDir(), "out")
			must(t, os.CopyFS(copied, os.DirFS(out)))
			dir := folderOf(t, copied, "inpaint_random")
			c.change(t, dir)
			e := ddiff(t, "verify", copied)
			last, code := "checked=2 ok=2 wrong=0 unfinished=0 newer=0 report=ok", 0
			if c.wrong > 0 {
				last, code = "checked=2 ok=1 wrong=1 unfinished=0 newer=0 report=ok", 3
				wantMessage(t, e, "ddiff: mismatch: 1 of 2 outputs do not match their passports")
			}
			wantCode(t, e, code)
			for _, parts := range c.lines {
				wantLine(t, e, parts...)
			}
			// Besides the problems: the other item, and the counts.
			if lines := strings.Split(strings.TrimSpace(e.stdout), "\n"); lines[len(lines)-1] != last || (code == 3 && len(lines) != c.wrong+2) {
				t.Errorf("want %d problems and the last line %q\n%v", c.wrong, last, e)
			}
		})
	}
}

// TestVerifySource changes, moves and forges the source photograph of an item.
func TestVerifySource(t *testing.T) {
	t.Parallel()
	dir := photographs(t, "coffee")
	photo := filepath.Join(dir, "coffee.png")
	out := tiny(t, "--images", dir, "--task", "hdr,super_resolution")
	e := ddiff(t, "verify", out)
	wantCode(t, e, 0)

	must(t, os.Rename(photo, photo+".old"))
	e = ddiff(t, "verify", out)
	wantCode(t, e, 0)
	wantLine(t, e, "note: its image is not checked: "+photo+" cannot be read")

	copyFile(t, photograph("rocket"), photo)
	e = ddiff(t, "verify", out)
	wantCode(t, e, 3)
	wantLine(t, e, photo+": item.image: has the SHA-256", "was made from", "put the original back")
	wantLine(t, e, "checked=2 ok=0 wrong=2 unfinished=0")
}

// TestVerifyForms names one item in every supported form, and copies of it elsewhere.
func TestVerifyForms(t *testing.T) {
	t.Parallel()
	out := tiny(t, "--images", photograph("coffee"), "--task", "hdr")
	dir := folderOf(t, out, "hdr")
	elsewhere := t.TempDir()
	moved, changed, beside := filepath.Join(elsewhere, "photo.png"), filepath.Join(elsewhere, "changed.png"), filepath.Join(dir, "copy.png")
	for _, path := range []string{moved, changed, beside} {
		copyFile(t, filepath.Join(dir, "restored.png"), path)
	}
	encodeAgain(t, moved)
	editPassport(t, changed, `"sigma":0.05`, `"sigma":0.1`)
	strange := t.TempDir()
	copyFile(t, moved, filepath.Join(strange, "photo.png"))
	write(t, filepath.Join(strange, "result.json"), []byte(`{"item":{"id":"other"}}`))
	for _, c := range []struct {
		name string
		args []string
		code int
		line string
	}{
		{"output", []string{out}, 0, "checked=1 ok=1 wrong=0 unfinished=0"},
		{"folder", []string{dir}, 0, "checked=1 ok=1 wrong=0 unfinished=0"},
		{"result", []string{filepath.Join(dir, "result.json")}, 0, "restored.png: ok"},
		{"image", []string{filepath.Join(dir, "restored.png")}, 0, "restored.png: ok"},
		{"all of them", []string{out, dir, filepath.Join(dir, "result.json")}, 0, "checked=3 ok=3 wrong=0 unfinished=0"},
		{"copy beside it", []string{beside}, 0, "copy.png: ok"},
		{"copy elsewhere", []string{moved}, 0, "photo.png: note: verified by its passport alone: there is no result.json beside it"},
		{"copy beside another result", []string{filepath.Join(strange, "photo.png")}, 0, "photo.png: note: verified by its passport alone: the result.json beside it is another item's"},
		{"changed copy elsewhere", []string{changed}, 3, "changed.png: item.id: is "},
		{"another picture", []string{photograph("coffee")}, 3, "coffee.png: passport: the file has none"},
		{"no picture", []string{filepath.Join(dir, "trace.json")}, 3, "trace.json: pixels: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := ddiff(t, append([]string{"verify"}, c.args...)...)
			wantCode(t, e, c.code)
			wantLine(t, e, c.line)
		})
	}
	t.Run("from its own folder", func(t *testing.T) {
		t.Parallel()
		cmd := command(t, "verify", "restored.png")
		cmd.Dir = dir
		e := end(t, cmd)
		wantCode(t, e, 0)
		wantLine(t, e, "restored.png: ok")
	})
	for _, c := range []struct {
		name    string
		args    []string
		message string
	}{
		{"nothing", nil, "ddiff: verify: 0 arguments; usage: ddiff verify OUTPUT...; see: ddiff verify --help"},
		{"nowhere", []string{"nowhere.png"}, "nowhere.png: no such file or folder"},
		{"empty folder", []string{t.TempDir()}, "neither that of an item nor an output"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := ddiff(t, append([]string{"verify"}, c.args...)...)
			wantCode(t, e, 2)
			wantMessage(t, e, "ddiff: ", c.message)
		})
	}
}

// TestVerifyJSON reads the output for programs. The item that an interruption leaves without a result is counted, and is no mismatch.
func TestVerifyJSON(t *testing.T) {
	t.Parallel()
	out := tiny(t, "--images", photograph("coffee"), "--task", "hdr,super_resolution")
	dir := folderOf(t, out, "hdr")
	flip(t, filepath.Join(dir, "measurement.npy"), 1)
	e := ddiff(t, "verify", "--json", out)
	wantCode(t, e, 3)
	lines := strings.Split(strings.TrimSpace(e.stdout), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines, want 3\n%v", len(lines), e)
	}
	for _, line := range lines[:2] {
		var o struct {
			File, Item string
			OK         bool
			Problems   []struct{ File, Field, Problem string }
		}
		must(t, json.Unmarshal([]byte(line), &o))
		if o.Item != filepath.Base(filepath.Dir(o.File)) {
			t.Errorf("item %s of %s", o.Item, o.File)
		}
		if bad := filepath.Dir(o.File) == dir; o.OK == bad || (len(o.Problems) == 1) != bad {
			t.Errorf("%s: ok=%v, problems %+v", o.File, o.OK, o.Problems)
		} else if bad && (o.Problems[0].File != filepath.Join(dir, "measurement.npy") || o.Problems[0].Field != "file" || o.Problems[0].Problem == "") {
			t.Errorf("the problem is %+v", o.Problems[0])
		}
	}
	var counts struct{ Checked, OK, Wrong int }
	must(t, json.Unmarshal([]byte(lines[2]), &counts))
	if counts.Checked != 2 || counts.OK != 1 || counts.Wrong != 1 {
		t.Errorf("counts %+v", counts)
	}

	must(t, os.Remove(filepath.Join(dir, "result.json")))
	for _, key := range report.Keys() { // which an interruption leaves unwritten
		must(t, os.RemoveAll(filepath.Join(out, key)))
	}
	e = ddiff(t, "verify", out)
	wantCode(t, e, 0)
	wantLine(t, e, "note: is unfinished: there is no result.json, which is written last; run its campaign again")
	wantLine(t, e, "checked=2 ok=1 wrong=0 unfinished=1")
	must(t, os.Remove(filepath.Join(dir, "restored.png")))
	e = ddiff(t, "verify", out, "--json")
	wantCode(t, e, 0)
	wantLine(t, e, `{"checked":2,"ok":1,"wrong":0,"unfinished":1,"newer":0,"report":"none"}`)
}

// TestVerifyStagedFile: a file of a lost attempt, which the one of the result has not replaced yet, is unfinished, and the run that verify advises
// finishes it. Another file under the name of the staged one hides no change.
func TestVerifyStagedFile(t *testing.T) {
	t.Parallel()
	images := photographs(t, "coffee")
	out := tiny(t, "--images", images, "--task", "hdr")
	dir := folderOf(t, out, "hdr")
	r, err := item.DecodeResult(read(t, filepath.Join(dir, item.FileResult)))
	must(t, err)
	r.Replaces = []string{item.FileData}
	data, err := item.EncodeResult(&r)
	must(t, err)
	write(t, filepath.Join(dir, item.FileResult), data)
	measurement, staged := filepath.Join(dir, item.FileData), filepath.Join(out, item.StagedKey(r.Item.ID, r.Artifacts[item.FileData]))
	must(t, os.MkdirAll(filepath.Dir(staged), 0o700))
	copyFile(t, measurement, staged)
	flip(t, measurement, 1)
	e := ddiff(t, "verify", dir)
	wantCode(t, e, 0)
	wantLine(t, e, "note: is unfinished: measurement.npy is that of a lost attempt", "run its campaign again")
	flip(t, staged, 1)
	wantCode(t, ddiff(t, "verify", dir), 3)
	flip(t, staged, 1)
	wantCode(t, restore(t, "--size", "32", "--steps", "10", "--quiet", "--out", out, "--images", images, "--task", "hdr"), 0)
	e = ddiff(t, "verify", out)
	wantCode(t, e, 0)
	wantLine(t, e, "checked=1 ok=1 wrong=0 unfinished=0")
}

// TestAttackReport changes files of the report: each is found, and the remedy writes the report again.
func TestAttackReport(t *testing.T) {
	t.Parallel()
	images := photographs(t, "coffee")
	out := tiny(t, "--images", images, "--task", "hdr,super_resolution")
	digit := regexp.MustCompile(`[0-9]\.[0-9]+`)
	for _, key := range []string{"results.csv", "summary.json", "summary.md", "index.html"} {
		path := filepath.Join(out, key)
		old := read(t, path)
		at := digit.FindIndex(old)
		changed := bytes.Clone(old)
		changed[at[1]-1] ^= 1
		write(t, path, changed)
		e := ddiff(t, "verify", out)
		wantCode(t, e, 3)
		wantLine(t, e, path+": file: has the SHA-256", "it was changed; run the campaign again, which writes the report from the results")
		wantLine(t, e, "checked=2 ok=2 wrong=0 unfinished=0 newer=0 report=wrong")
		wantMessage(t, e, "ddiff: mismatch: the report or the scores do not match their digests or the items")
		write(t, path, old)
	}
	wantCode(t, ddiff(t, "verify", out), 0)
	edit(t, filepath.Join(out, "SHA256SUMS"), "  summary.md", "  ../summary.md")
	wantLine(t, ddiff(t, "verify", out), "SHA256SUMS: file: line ", "is no digest of a file of the report")
	must(t, os.Remove(filepath.Join(out, "SHA256SUMS")))
	e := ddiff(t, "verify", "--json", out)
	wantCode(t, e, 3)
	wantLine(t, e, `"problem":"is missing beside results.csv;`)

	wantCode(t, ddiff(t, "report", out, "--format", "html", "--out", out), 0)
	e = ddiff(t, "verify", out)
	wantCode(t, e, 0)
	wantLine(t, e, "report=ok")
}

// TestVerifyReportedItems loses an item of the report, restores it with another score, and changes the scores of ddiff score.
func TestVerifyReportedItems(t *testing.T) {
	t.Parallel()
	images := photographs(t, "coffee")
	out := tiny(t, "--images", images, "--task", "hdr,super_resolution")
	wantCode(t, ddiff(t, "score", out, "--metric", "psnr"), 0)
	wantCode(t, ddiff(t, "verify", out), 0)
	wrong := func(counts string, line ...string) {
		t.Helper()
		e := ddiff(t, "verify", out)
		wantCode(t, e, 3)
		wantLine(t, e, line...)
		wantLine(t, e, counts)
		wantMessage(t, e, "ddiff: mismatch: the report or the scores do not match their digests or the items")
	}
	part, err := filepath.Glob(filepath.Join(out, "scores", "*", "*.jsonl"))
	must(t, err)
	old := read(t, part[0])
	edit(t, part[0], `"value":`, `"value":1`)
	wrong("checked=2 ok=2 wrong=0 unfinished=0 newer=0 report=wrong", part[0]+": file: it was changed", "put the original back, or move the file away and run ddiff score again")
	write(t, part[0], old)

	dir := folderOf(t, out, "hdr")
	gone := filepath.Join(t.TempDir(), "gone")
	must(t, os.Rename(dir, gone))
	wrong("checked=1 ok=1 wrong=0 unfinished=0 newer=0 report=wrong",
		filepath.Join(dir, "result.json")+": file: is missing, and results.csv has image coffee, task hdr, as done; put the item's folder back")
	must(t, os.Rename(gone, dir))
	must(t, os.Rename(filepath.Join(dir, "result.json"), gone))
	wrong("checked=2 ok=1 wrong=0 unfinished=1 newer=0 report=wrong", filepath.Join(dir, "result.json")+": file: is missing, and results.csv has image coffee")
	must(t, os.Rename(gone, filepath.Join(dir, "result.json")))

	// A report of other results, which is consistent in itself.
	table := read(t, filepath.Join(out, "results.csv"))
	psnr := slices.Index(strings.Split(string(table), ","), "psnr")
	row := strings.Split(strings.Split(string(table), "\n")[1], ",")
	changed := bytes.Replace(table, []byte(","+row[psnr]+","), []byte(",99,"), 1)
	write(t, filepath.Join(out, "results.csv"), changed)
	edit(t, filepath.Join(out, "SHA256SUMS"), regular.SHA256(table), regular.SHA256(changed))
	wrong("checked=2 ok=2 wrong=0 unfinished=0 newer=0 report=wrong",
		file(out, row[0], item.FileResult)+": metrics.psnr: is "+row[psnr]+", results.csv says 99: the item was restored again since, or one was changed; run the campaign again")

	again := bytes.Replace(table, []byte(row[0]), []byte("../"+row[0]), 1)
	write(t, filepath.Join(out, "results.csv"), again)
	edit(t, filepath.Join(out, "SHA256SUMS"), regular.SHA256(changed), regular.SHA256(again))
	wrong("checked=2 ok=2 wrong=0 unfinished=0 newer=0 report=wrong", "result.json: file: cannot be read: ")

	// A page elsewhere has pictures of the items alone.
	page := filepath.Join(t.TempDir(), "page")
	wantCode(t, ddiff(t, "report", out, "--format", "html", "--out", page), 0)
	e := ddiff(t, "verify", page)
	wantCode(t, e, 0)
	wantLine(t, e, "checked=2 ok=0 wrong=0 unfinished=2 newer=0 report=ok")
}

// TestAttackNewerPassport verifies and replays what a version wrote that has more fields, and one with a higher schema. Neither is wrong, and no
// line advises to remove or replace anything.
func TestAttackNewerPassport(t *testing.T) {
	t.Parallel()
	out := tiny(t, "--images", photographs(t, "coffee"), "--task", "hdr")
	picture := filepath.Join(folderOf(t, out, "hdr"), "restored.png")
	result := filepath.Join(filepath.Dir(picture), "result.json")
	// again states the digests of the changed files.
	again := func(change func(r map[string]any)) {
		var r map[string]any
		must(t, json.Unmarshal(read(t, result), &r))
		delete(r, "sha256")
		r["artifacts"].(map[string]any)["restored.png"] = regular.SHA256(read(t, picture))
		change(r)
		data, err := json.Marshal(r)
		must(t, err)
		sum := regular.SHA256(data)
		write(t, result, append(data[:len(data)-1], `,"sha256":"`+sum+`"}`...))
	}
	none := func(map[string]any) {}
	noAdvice := func(e ended) {
		t.Helper()
		if strings.Contains(e.stdout+e.stderr, "remove") || strings.Contains(e.stdout+e.stderr, "put the original back") {
			t.Errorf("advice about a file that was not read\n%v", e)
		}
	}

	editPassport(t, picture, `"schema":1`, `"schema":1,"later":{"x":1}`)
	editPassport(t, picture, `"item":{`, `"item":{"beside_the_identity":2,`)
	again(func(r map[string]any) { r["later"], r["item"].(map[string]any)["beside_the_identity"] = 1, 2 })
	e := ddiff(t, "verify", out)
	wantCode(t, e, 0)
	wantLine(t, e, "checked=1 ok=1 wrong=0 unfinished=0 newer=0")

	// A field of the identity that this version does not know.
	editPassport(t, picture, `"sigma":0.05`, `"sigma_of_later":0.05`)
	again(func(r map[string]any) {
		item := r["item"].(map[string]any)
		item["sigma_of_later"] = item["sigma"]
		delete(item, "sigma")
	})
	e = ddiff(t, "verify", out)
	wantCode(t, e, 2)
	wantLine(t, e, "note: restored.png is not checked: written by a newer version of ddiff: item coffee has a setting that this version does not know")
	wantLine(t, e, "checked=1 ok=0 wrong=0 unfinished=0 newer=1")
	noAdvice(e)

	editPassport(t, picture, `"schema":1`, `"schema":2`)
	again(none)
	for _, command := range []string{"verify", "replay"} {
		e = ddiff(t, command, picture)
		wantCode(t, e, 2)
		wantMessage(t, e, "written by a newer version of ddiff; "+command, " with that version")
		noAdvice(e)
	}
	again(func(r map[string]any) { r["schema"], r["item"] = 2, []int{1} })
	for _, args := range [][]string{{"verify", out}, {"report", out}, {"compare", out, out}, {"score", out, "--metric", "psnr"}} {
		e = ddiff(t, args...)
		wantCode(t, e, 2)
		wantMessage(t, e, "written by a newer version of ddiff")
		noAdvice(e)
	}
}
