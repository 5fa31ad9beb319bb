package testbed

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

	"ddiff/restore/item"
)

// Comparison counts the differences between two outputs.
type Comparison struct {
	// Items have a result in both outputs.
	Items int
	// Lost identities are missing from the second output, Extra from the first. Duplicates are
	// further results for one entry of the manifest.
	Lost, Extra, Duplicates int
	// Measurements counts items whose measurement.npy differs in a bit, Images those whose
	// restored.png differs by more than one grey level.
	Measurements, Images int
	// Levels is the largest difference between two images, in grey levels.
	Levels int
}

// Err describes the differences; nil if there are none beyond one grey level.
func (c Comparison) Err() error {
	if c.Lost+c.Extra+c.Duplicates+c.Measurements+c.Images > 0 {
		return fmt.Errorf("of %d items: %d lost, %d extra, %d duplicates, %d measurements differ, %d images differ",
			c.Items, c.Lost, c.Extra, c.Duplicates, c.Measurements, c.Images)
	}
	return nil
}

// Compare compares an output with a reference output.
func Compare(reference, output string) (Comparison, error) {
	var c Comparison
	want, err := Results(reference)
	if err != nil {
		return c, err
	}
	got, err := Results(output)
	if err != nil {
		return c, err
	}
	entries := map[string]bool{}
	for id, r := range got {
		if _, ok := want[id]; !ok {
			c.Extra++
		}
		entry := fmt.Sprintf("%s %s %s %d", r.Item.Name, r.Item.Task, r.Item.Method, r.Item.Run)
		if entries[entry] {
			c.Duplicates++
		}
		entries[entry] = true
	}
	for id := range want {
		if _, ok := got[id]; !ok {
			c.Lost++
			continue
		}
		c.Items++
		same, err := equal(path(reference, id, item.FileData), path(output, id, item.FileData))
		if err != nil {
			return c, err
		}
		if !same {
			c.Measurements++
		}
		d, err := difference(path(reference, id, item.FileRestored), path(output, id, item.FileRestored))
		if err != nil {
			return c, err
		}
		if c.Levels = max(c.Levels, d); d > 1 {
			c.Images++
		}
	}
	return c, nil
}

// path returns the path of an item's file.
func path(output, id, file string) string {
	return filepath.Join(output, filepath.FromSlash(item.Key(id, file)))
}

// Results reads every result of an output, by identity. A result of another item, or one whose
// outcome is not done, is an error.
func Results(output string) (map[string]item.Result, error) {
	found, err := filepath.Glob(filepath.Join(output, "items", "*", item.FileResult))
	if err != nil {
		return nil, err
	}
	all := map[string]item.Result{}
	for _, path := range found {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var r item.Result
		if err := json.Unmarshal(data, &r); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		id := filepath.Base(filepath.Dir(path))
		if r.Item.ID != id || r.Outcome != item.OutcomeDone {
			return nil, fmt.Errorf("read %s: it is the result of item %q, outcome %s", path, r.Item.ID, r.Outcome)
		}
		all[id] = r
	}
	return all, nil
}

// equal reports whether two files have the same bytes. A missing second file differs.
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

// difference returns the largest difference between two images of one size, in grey levels.
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
		return 0, fmt.Errorf("%s and %s differ in size", a, b)
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
