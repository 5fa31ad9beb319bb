package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"

	"ddiff/manifest"
)

// compared is what came of comparing two outputs.
type compared struct {
	// items have a result in both.
	items int
	// lost are identities of the first that the second has not, and extra the other way
	// round. duplicates are results beyond the first of one entry of the manifest.
	lost, extra, duplicates int
	// measurements differ in a bit, images by more than one grey level.
	measurements, images int
	// most is the largest difference of two images, in grey levels.
	most int
}

func (c compared) err() error {
	if c.lost+c.extra+c.duplicates+c.measurements+c.images > 0 {
		return fmt.Errorf("of %d items: %d lost, %d that nobody asked for, %d twice, %d other measurements, %d other images",
			c.items, c.lost, c.extra, c.duplicates, c.measurements, c.images)
	}
	return nil
}

// compare holds an output against that of the undisturbed run.
func compare(reference, output string) (compared, error) {
	var c compared
	want, err := results(reference)
	if err != nil {
		return c, err
	}
	got, err := results(output)
	if err != nil {
		return c, err
	}
	entries := map[string]bool{}
	for id, r := range got {
		if _, ok := want[id]; !ok {
			c.extra++
		}
		entry := fmt.Sprintf("%s %s %s %d", r.Item.Name, r.Item.Task, r.Item.Method, r.Item.Run)
		if entries[entry] {
			c.duplicates++
		}
		entries[entry] = true
	}
	for id := range want {
		if _, ok := got[id]; !ok {
			c.lost++
			continue
		}
		c.items++
		same, err := equal(filepath.Join(reference, manifest.ItemKey(id, manifest.FileData)), filepath.Join(output, manifest.ItemKey(id, manifest.FileData)))
		if err != nil {
			return c, err
		}
		if !same {
			c.measurements++
		}
		d, err := difference(filepath.Join(reference, manifest.ItemKey(id, manifest.FileRestored)), filepath.Join(output, manifest.ItemKey(id, manifest.FileRestored)))
		if err != nil {
			return c, err
		}
		if c.most = max(c.most, d); d > 1 {
			c.images++
		}
	}
	return c, nil
}

// results reads all results of an output, by identity.
func results(output string) (map[string]manifest.Result, error) {
	found, err := filepath.Glob(filepath.Join(output, "items", "*", manifest.FileResult))
	if err != nil {
		return nil, err
	}
	all := map[string]manifest.Result{}
	for _, path := range found {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var r manifest.Result
		if err := json.Unmarshal(data, &r); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		id := filepath.Base(filepath.Dir(path))
		if r.Item.ID != id || r.Outcome != manifest.OutcomeDone {
			return nil, fmt.Errorf("%s: it is the result of item %q, %s", path, r.Item.ID, r.Outcome)
		}
		all[id] = r
	}
	return all, nil
}

// equal tells whether two files have the same bytes.
func equal(a, b string) (bool, error) {
	x, err := os.ReadFile(a)
	if err != nil {
		return false, err
	}
	y, err := os.ReadFile(b)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return bytes.Equal(x, y), err
}

// difference is the largest difference of two images of one size, in grey levels.
func difference(a, b string) (int, error) {
	x, err := readPNG(a)
	if err != nil {
		return 0, err
	}
	y, err := readPNG(b)
	if err != nil {
		return 0, err
	}
	if x.Bounds() != y.Bounds() {
		return 0, fmt.Errorf("%s and %s have other sizes", a, b)
	}
	most := 0
	for row := x.Bounds().Min.Y; row < x.Bounds().Max.Y; row++ {
		for column := x.Bounds().Min.X; column < x.Bounds().Max.X; column++ {
			r1, g1, b1, _ := x.At(column, row).RGBA()
			r2, g2, b2, _ := y.At(column, row).RGBA()
			for _, pair := range [][2]uint32{{r1, r2}, {g1, g2}, {b1, b2}} {
				most = max(most, abs(int(pair[0]>>8)-int(pair[1]>>8)))
			}
		}
	}
	return most, nil
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

func readPNG(path string) (image.Image, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", path, err)
	}
	return img, nil
}
