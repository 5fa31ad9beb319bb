package main_test

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/internal/restore/raster"
	"ddiff/restore/item"
)

// TestBadImages restores one good photograph among every kind of unusable file.
func TestBadImages(t *testing.T) {
	t.Parallel()
	dir, out := photographs(t, "chelsea"), filepath.Join(t.TempDir(), "out")
	photo := read(t, photograph("coffee"))
	write(t, filepath.Join(dir, "truncated.png"), photo[:len(photo)/2])
	write(t, filepath.Join(dir, "huge.png"), hugeHeader(photo))
	write(t, filepath.Join(dir, "text.png"), []byte("this is no image\n"))
	write(t, filepath.Join(dir, "empty.png"), nil)
	must(t, os.Mkdir(filepath.Join(dir, "x.png"), 0o755))
	must(t, os.Symlink("nowhere", filepath.Join(dir, "dangling.png")))

	e := restore(t, "--images", dir, "--task", "hdr,super_resolution", "--steps", "10", "--out", out)
	wantCode(t, e, 3)
	wantCounts(t, e, 2, 12, 0, out)
	wantMessage(t, e, "ddiff: some items could not be restored: 12 failed, 0 dead")
	for name, reason := range map[string]string{
		"truncated": "not enough pixel data",
		"huge":      "30000x30000 pixels, the limit is",
		"text":      "not a PNG, JPEG, TIFF, WebP, BMP or GIF image",
		"empty":     "is an empty file",
		"x":         "not a regular file but a directory",
		"dangling":  "no such file",
	} {
		for _, task := range []string{"hdr", "super_resolution"} {
			wantMessage(t, e, "failed: "+name+" ("+task+"): ", filepath.Join(dir, name+".png"), reason)
		}
	}
	wantItems(t, out, 2)
	if rows := strings.Count(string(read(t, filepath.Join(out, "results.csv"))), "\n"); rows != 1+14 {
		t.Errorf("results.csv has %d lines, want a header and 14 rows", rows)
	}

	// A repaired file is restored, and no other item runs again.
	copyFile(t, photograph("coffee"), filepath.Join(dir, "truncated.png"))
	e = restore(t, "--images", dir, "--task", "hdr,super_resolution", "--steps", "10", "--out", out)
	wantCode(t, e, 3)
	wantCounts(t, e, 4, 10, 0, out)
}

// hugeHeader returns a PNG whose header declares 30000 × 30000 pixels.
func hugeHeader(photo []byte) []byte { return withSize(photo, 30_000) }

// withSize returns a PNG whose header has a square size.
func withSize(photo []byte, side uint32) []byte {
	data := append([]byte(nil), photo...)
	header := data[12:29] // type and content of the first chunk
	binary.BigEndian.PutUint32(header[4:], side)
	binary.BigEndian.PutUint32(header[8:], side)
	sum := crc32.ChecksumIEEE(header)
	copy(data[29:], []byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
	return data
}

// TestBadMeasurements runs a list with stored measurements, with and without an image.
func TestBadMeasurements(t *testing.T) {
	t.Parallel()
	dir, out := photographs(t, "coffee"), filepath.Join(t.TempDir(), "out")
	measurement := func(name string, shape []int, value float32) {
		t.Helper()
		n := 1
		for _, d := range shape {
			n *= d
		}
		values := make([]float32, n)
		values[0], values[n/2] = -1, value // without a dark value zero may be black
		data, err := raster.EncodeNPY(shape, values)
		must(t, err)
		write(t, filepath.Join(dir, name), data)
	}
	measurement("good.npy", []int{3, 16, 16}, 0.5)
	measurement("nan.npy", []int{3, 16, 16}, nan())
	measurement("small.npy", []int{3, 10, 10}, 0.5)
	measurement("grey.npy", []int{1, 16, 16}, 0.5)
	measurement("flat.npy", []int{256}, 0.5)
	whole := read(t, filepath.Join(dir, "good.npy"))
	write(t, filepath.Join(dir, "cut.npy"), whole[:len(whole)-100])
	write(t, filepath.Join(dir, "list.csv"), []byte(strings.Join([]string{
		"name,image,measurement",
		"alone,,good.npy", "both,coffee.png,good.npy", "simulated,coffee.png,",
		"nan alone,,nan.npy", "nan both,coffee.png,nan.npy", "small both,coffee.png,small.npy",
		"grey alone,,grey.npy", "flat alone,,flat.npy", "cut alone,,cut.npy", "missing,,nowhere.npy", "neither,,", "",
	}, "\n")))

	e := restore(t, "--images", filepath.Join(dir, "list.csv"), "--task", "super_resolution", "--steps", "10", "--out", out)
	wantCode(t, e, 3)
	wantCounts(t, e, 3, 8, 0, out)
	for name, parts := range map[string][]string{
		"nan alone":  {"nan.npy", "not a finite number"},
		"nan both":   {"nan.npy", "not a finite number"},
		"small both": {"small.npy", "its shape is [3 10 10], the task needs [3 16 16]"},
		"grey alone": {"grey.npy", "channels"},
		"flat alone": {"flat.npy", "[256]"},
		"cut alone":  {"cut.npy"},
		"missing":    {"nowhere.npy", "no such file"},
		"neither":    {"list.csv:12"},
	} {
		wantMessage(t, e, append([]string{"failed: " + name + " (super_resolution): "}, parts...)...)
	}
	for id, r := range wantItems(t, out, 3) {
		_, err := os.Stat(file(out, id, item.FileTruth))
		if alone := r.Item.Name == "alone"; alone != os.IsNotExist(err) || alone != (!r.Metrics.Has("psnr")) || !r.Metrics.Has("residual") {
			t.Errorf("item %s: truth %v, metrics %+v", r.Item.Name, err, r.Metrics)
		}
	}
}

func nan() float32 {
	zero := float32(0)
	return zero / zero
}

// TestBadDatasets runs unusable datasets.
func TestBadDatasets(t *testing.T) {
	t.Parallel()
	empty, list := t.TempDir(), filepath.Join(t.TempDir(), "list.csv")
	write(t, list, []byte("picture,task\na.png,hdr\n"))
	write(t, filepath.Join(empty, "notes.md"), []byte("no image"))
	for _, c := range []struct {
		name, path string
		message    []string
	}{
		{"empty folder", empty, []string{"dataset has no rows", empty, "1 other entries skipped", "want files that end in png"}},
		{"missing", filepath.Join(empty, "nowhere"), []string{"no dataset there", "nowhere", "check dataset.path"}},
		{"glob without a match", filepath.Join(empty, "*.png"), []string{"dataset has no rows", "the glob matches no file; check"}},
		{"list with a wrong header", list, []string{list, "list.csv:1", `unknown column "picture"`}},
		{"no dataset", filepath.Join(empty, "notes.md"), []string{"no dataset there", "want a directory, a glob"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := restore(t, "--images", c.path, "--task", "hdr", "--out", filepath.Join(t.TempDir(), "out"))
			wantCode(t, e, 2)
			wantMessage(t, e, append([]string{"ddiff: "}, c.message...)...)
		})
	}
}

// TestBadResult damages the result of an earlier run: one item fails, with a remedy.
func TestBadResult(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(data []byte) []byte
	}{
		{"cut short", func(data []byte) []byte { return data[:len(data)/2] }},
		{"empty object", func([]byte) []byte { return []byte("{}") }},
		{"empty file", func([]byte) []byte { return nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, out := photographs(t, "chelsea", "coffee"), filepath.Join(t.TempDir(), "out")
			args := []string{"--images", dir, "--task", "hdr", "--steps", "10", "--out", out}
			wantCode(t, restore(t, append(args, "--limit", "1")...), 0)
			var path string
			for id := range wantItems(t, out, 1) {
				path = file(out, id, item.FileResult)
			}
			sound := read(t, path)
			write(t, path, c.change(sound))

			e := restore(t, args...)
			wantCode(t, e, 3)
			wantCounts(t, e, 1, 1, 0, out)
			key, err := filepath.Rel(out, path)
			must(t, err)
			wantMessage(t, e, "failed: chelsea (hdr)", key, "move the item's folder away and run again")

			must(t, os.Remove(path))
			e = restore(t, args...)
			wantCode(t, e, 0)
			wantCounts(t, e, 2, 0, 0, out)
			var was, is item.Result
			must(t, json.Unmarshal(sound, &was))
			must(t, json.Unmarshal(read(t, path), &is))
			if was.Metrics["psnr"] != is.Metrics["psnr"] {
				t.Errorf("made again the PSNR is %v, it was %v", is.Metrics["psnr"], was.Metrics["psnr"])
			}
		})
	}
}
