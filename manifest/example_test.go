package manifest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"ddiff/manifest"
	"ddiff/restore/parameter"
)

func ExampleParse() {
	spec, err := manifest.Parse("campaign.yaml", []byte(`
dataset: {path: photos, size: 128}
tasks:
  - gaussian_deblur
  - {name: super_resolution, params: {factor: 4}, sigma: 0.02}
`), "/data")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(spec.Name, spec.Dataset.Path, spec.Sigma)
	for _, t := range spec.Tasks {
		fmt.Println(t.Name, *spec.Effective(t).Sigma)
	}
	// Output:
	// campaign /data/photos 0.05
	// gaussian_deblur 0.05
	// super_resolution 0.02
}

func ExampleParse_errors() {
	_, err := manifest.Parse("campaign.yaml", []byte(`name: night photos
dataset:
  path: photos
  size: large
tasks: [hdr]
runs: 0
stpes: 100
`), "/data")
	fmt.Println(err)
	// Output:
	// campaign.yaml:4: dataset.size: want an integer, got "large"
	// campaign.yaml:6: runs: 0 is out of range, want 1 to 1000
	// campaign.yaml:7: unknown field "stpes" (did you mean "steps"?)
}

func ExampleSpec_Validate() {
	spec := manifest.Default()
	spec.Dataset.Path = "/data/photos"
	spec.Tasks = []manifest.TaskSpec{{Name: "super_resolutoin"}}
	spec.Name = "from flags"
	fmt.Println(spec.Validate(manifest.Vocabulary{
		Tasks:   map[string]parameter.List{"super_resolution": {{Name: "factor", Max: 8}}, "hdr": nil},
		Methods: []string{"ddiff"},
		Presets: []string{"natural"},
	}))
	// Output:
	// tasks[0]: unknown task "super_resolutoin" (did you mean "super_resolution"?)
}

func ExampleRows() {
	dir, err := os.MkdirTemp("", "photos")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for _, name := range []string{"dog.png", "cat.jpg", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("..."), 0o600); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "trap.png"), 0o700); err != nil {
		fmt.Println(err)
		return
	}
	skipped := 0
	for row, err := range manifest.Rows(context.Background(), manifest.Dataset{Path: dir}, func(string) { skipped++ }) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(row.Index, row.Name, row.Err == nil)
	}
	fmt.Println("skipped:", skipped)
	// Output:
	// 0 cat true
	// 1 dog true
	// 2 trap false
	// skipped: 1
}

func ExampleExpander_Expand() {
	spec := manifest.Default()
	spec.Name, spec.Dataset.Path, spec.Runs = "demo", "/photos", 2
	spec.Tasks = []manifest.TaskSpec{{Name: "hdr"}}
	resolve := func(manifest.TaskSpec, bool, string, int, int) (json.RawMessage, map[string]float64, error) {
		return json.RawMessage(`{"steps": 100}`), map[string]float64{"scale": 2}, nil
	}
	const priorDigest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	expander := manifest.NewExpander(spec, priorDigest, resolve)

	row := manifest.Row{Name: "cat", Image: "/photos/cat.jpg"}
	items, failed := expander.Expand(row, manifest.Probe{
		ImageSHA256: "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
		Width:       256, Height: 256,
	}, 0)
	for _, it := range items {
		fmt.Println(it.Index, it.Task, it.Method, "run", it.Run)
	}
	fmt.Println(len(failed), "failed")
	// Output:
	// 0 hdr ddiff run 0
	// 1 hdr ddiff run 1
	// 0 failed
}
