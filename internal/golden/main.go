// Command golden compares the results of two outputs of ddiff run, item by item.
//
//	go run ./internal/golden OLD NEW [OLD NEW ...]
//
// It prints one line for scripts and exits with 1 unless the outputs have the same identities and every item has equal
// pixels in restored.png, equal bytes in measurement.npy and trace.json, and an equal item in result.json.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"slices"
)

// counts are the numbers of comparisons of one kind.
type counts struct{ all, equal int }

func (c *counts) add(equal bool) {
	c.all++
	if equal {
		c.equal++
	}
}

func main() {
	if len(os.Args) < 3 || len(os.Args)%2 == 0 {
		fmt.Fprintln(os.Stderr, "usage: golden OLD NEW [OLD NEW ...]")
		os.Exit(2)
	}
	var c comparison
	for i := 1; i < len(os.Args); i += 2 {
		if err := c.outputs(os.Args[i], os.Args[i+1]); err != nil {
			fmt.Fprintln(os.Stderr, "golden:", err)
			os.Exit(1)
		}
	}
	fmt.Printf("identities=%d equal=%d pixels=%d equal=%d measurements=%d equal=%d curves=%d equal=%d items=%d equal=%d\n",
		c.identities.all, c.identities.equal, c.pixels.all, c.pixels.equal, c.measurements.all, c.measurements.equal,
		c.curves.all, c.curves.equal, c.items.all, c.items.equal)
	for _, k := range []counts{c.identities, c.pixels, c.measurements, c.curves, c.items} {
		if k.all == 0 || k.all != k.equal {
			os.Exit(1)
		}
	}
}

type comparison struct{ identities, pixels, measurements, curves, items counts }

// outputs compares two directories of results.
func (c *comparison) outputs(older, newer string) error {
	before, err := identities(older)
	if err != nil {
		return err
	}
	after, err := identities(newer)
	if err != nil {
		return err
	}
	for _, id := range after {
		if !slices.Contains(before, id) {
			c.identities.add(false)
		}
	}
	for _, id := range before {
		found := slices.Contains(after, id)
		c.identities.add(found)
		if !found {
			continue
		}
		for _, file := range []struct {
			name   string
			counts *counts
			decode func([]byte) ([]byte, error)
		}{
			{"restored.png", &c.pixels, pixels}, {"measurement.npy", &c.measurements, nil}, {"trace.json", &c.curves, nil},
			{"result.json", &c.items, item},
		} {
			a, err := content(filepath.Join(older, "items", id, file.name), file.decode)
			if err != nil {
				return err
			}
			b, err := content(filepath.Join(newer, "items", id, file.name), file.decode)
			if err != nil {
				return err
			}
			if !bytes.Equal(a, b) {
				fmt.Fprintf(os.Stderr, "golden: %s differs: %s and %s\n", file.name, filepath.Join(older, "items", id), filepath.Join(newer, "items", id))
			}
			file.counts.add(bytes.Equal(a, b))
		}
	}
	return nil
}

// identities lists the items that have a result.
func identities(output string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(output, "items", "*", "result.json"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no results in %s", output)
	}
	for i, f := range files {
		files[i] = filepath.Base(filepath.Dir(f))
	}
	return files, err
}

// content reads a file and decodes the part that is compared.
func content(path string, decode func([]byte) ([]byte, error)) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err == nil && decode != nil {
		data, err = decode(data)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return data, nil
}

// pixels are the decoded samples with the size of the image.
func pixels(data []byte) ([]byte, error) {
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	out := fmt.Append(nil, img.Bounds())
	for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y++ {
		for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x++ {
			r, g, b, a := img.At(x, y).RGBA()
			out = append(out, byte(r>>8), byte(g>>8), byte(b>>8), byte(a>>8))
		}
	}
	return out, nil
}

// item is the item of a result without the campaign, whose id is not part of an identity.
func item(data []byte) ([]byte, error) {
	var result struct {
		Item map[string]any `json:"item"`
	}
	if err := json.Unmarshal(data, &result); err != nil {
		return nil, err
	}
	delete(result.Item, "campaign")
	return json.Marshal(result.Item)
}
