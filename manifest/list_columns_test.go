package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A mapping covers columns that are renamed, shadowed, used twice and ignored.
func TestColumns(t *testing.T) {
	t.Parallel()
	const csvText = "file_path,noise,caption,image,seed\na.png,0.1,a cat,shadowed,not a seed\nb.PNG,,x,y,z\n"
	const jsonlText = `{"file_path": "a.png", "noise": 0.1, "caption": {"any": ["thing", 1]}, "image": 5, "seed": "not a seed"}
{"file_path": "b.PNG", "noise": null}
`
	columns := map[string]string{"image": "file_path", "name": "file_path", "sigma": "noise", "seed": ""}
	for file, text := range map[string]string{"l.csv": csvText, "l.jsonl": jsonlText} {
		_, list := writeList(t, file, text)
		rows, _, err := collect(t, Dataset{Path: list, Columns: columns})
		if err != nil || len(rows) != 2 {
			t.Fatalf("%s: %d rows, error %v", file, len(rows), err)
		}
		a, b := rows[0], rows[1]
		if a.Err != nil || a.Name != "a.png" || !strings.HasSuffix(a.Image, "/in/a.png") || *a.Overrides.Sigma != 0.1 || a.Overrides.Seed != nil {
			t.Errorf("%s: %+v", file, a)
		}
		if b.Err != nil || b.Name != "b.PNG" || b.Overrides.Sigma != nil {
			t.Errorf("%s: %+v", file, b)
		}
	}
	_, list := writeList(t, "l.csv", csvText)
	for _, tc := range []struct {
		columns map[string]string
		want    string
	}{
		{map[string]string{"image": "file"}, `l.csv:1: dataset.columns.image: unknown column "file" (valid: file_path, noise, caption, image, seed)`},
		{map[string]string{"image": "", "sigma": "noise"}, `l.csv:1: the header has neither column "image" nor "measurement"`},
	} {
		if _, _, err := collect(t, Dataset{Path: list, Columns: tc.columns}); !errors.Is(err, ErrBadList) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: %v", tc.columns, err)
		}
	}
}

func TestColumnsInTheCampaign(t *testing.T) {
	t.Parallel()
	s, err := Parse("c.yaml", []byte("dataset: {path: l.csv, columns: {image: file, param.factor: \"2x\", seed: \"\"}}\ntasks: [a]\n"), "/base")
	must(t, err)
	if got := fmt.Sprint(s.Dataset.Columns); got != "map[image:file param.factor:2x seed:]" {
		t.Errorf("columns %s", got)
	}
	_, err = Parse("c.yaml", []byte("dataset:\n  path: l.csv\n  columns:\n    imge: file\n    param.: x\n    sigma: 1\n    image: \"\"\n    measurement: \"\"\n"), "/base")
	const want = `c.yaml:3: dataset.columns: reads neither image nor measurement; leave one of them in
c.yaml:4: dataset.columns.imge: unknown column "imge" (did you mean "image"?)
c.yaml:5: dataset.columns.param.: column "param." names no parameter, want param.NAME
c.yaml:6: dataset.columns.sigma: want text (quote what looks like a number or true/false), got "1"`
	if err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
}

func TestColumnsOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		columns map[string]string
		header  string
		strict  bool
		want    string
	}{
		{nil, "image sigma", true, "[[image] [sigma]]"},
		{nil, "image colour", false, "[[image] []]"},
		{nil, "image colour", true, `not a usable list: l.parquet: unknown column "colour"`},
		{map[string]string{"image": "f", "name": "f"}, "f x", true, "[[image name] []]"},
		{nil, "image image", false, `not a usable list: l.parquet: column "image" is repeated; remove one`},
		{nil, "image x x", false, "[[image] [] []]"},
		{map[string]string{"image": "f"}, "f x x", true, `not a usable list: l.parquet: column "x" is repeated; remove one`},
		{map[string]string{"image": "f"}, "f x x", false, "[[image] [] []]"},
	} {
		got, err := ListConfig{File: "l.parquet", Columns: tc.columns}.ColumnsOf(strings.Fields(tc.header), tc.strict)
		text := fmt.Sprint(got)
		if err != nil {
			text = err.Error()
		}
		if !strings.HasPrefix(text, tc.want) || errors.Is(err, ErrBadList) == strings.HasPrefix(tc.want, "[") {
			t.Errorf("%v, %s, strict %t: %s, want %s", tc.columns, tc.header, tc.strict, text, tc.want)
		}
	}
	for n, want := range map[int]bool{0: false, 1: true, 20: true, 21: false} {
		if remedy := mappingRemedy(make([]string, n)); (remedy != "") != want {
			t.Errorf("%d columns: remedy %q", n, remedy)
		}
	}
}

// Addresses stay as they are, paths start from the campaign file.
func TestDatasetPaths(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"photos": "/base/photos", "/photos": "/photos", "dir:photos": "dir:/base/photos", "dir:/x": "dir:/x",
		"s3://bucket/x?endpoint=y": "s3://bucket/x?endpoint=y", "https://h/l.csv": "https://h/l.csv",
		"shards/{0..3}.tar": "/base/shards/{0..3}.tar", "dir:": "/base/dir:",
	} {
		s, err := Parse("c.yaml", fmt.Appendf(nil, "dataset: {path: %q}\ntasks: [a]\n", path), "/base")
		if err != nil || s.Dataset.Path != want {
			t.Errorf("%s: %v, error %v", path, s, err)
		}
	}
	if _, _, err := collect(t, Dataset{Path: "s3://bucket/x"}); !errors.Is(err, ErrNoDataset) {
		t.Errorf("an address: %v", err)
	}
}

// The hints of a list are checked for their form.
func TestHints(t *testing.T) {
	t.Parallel()
	digest := strings.Repeat("0f", 32)
	_, list := writeList(t, "l.csv", "image,measurement,sha256,width,height\n"+strings.Join([]string{
		"a.png,," + strings.ToUpper(digest) + ",640,480", "a.png,," + digest[1:] + ",,", "a.png,,x" + digest[1:] + ",,", "a.png,,,0,1", "a.png,,,1.5,1",
		"a.png,,,5,", ",y.npy," + digest + ",,",
	}, "\n"))
	rows, _, err := collect(t, Dataset{Path: list})
	must(t, err)
	if r := rows[0]; r.Err != nil || r.ImageSHA256 != digest || r.Width != 640 || r.Height != 480 {
		t.Errorf("%+v", r)
	}
	for i, r := range rows[1:] {
		if r.Err == nil || r.ImageSHA256 != "" && !slices.Contains([]int{5}, i) {
			t.Errorf("row %d: %+v", i+1, r)
		}
	}
}
