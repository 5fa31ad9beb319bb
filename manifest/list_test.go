package manifest

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ddiff/restore/item"
)

// writeList makes a folder with two images, a measurement and one list.
func writeList(t *testing.T, name, text string) (root, list string) {
	t.Helper()
	root = plant(t, map[string]string{
		"in/a.png": "x", "in/b.PNG": "x", "in/y.npy": "x", "in/mask.png": "x", "in/k.npy": "x",
		"in/dir.png/": "", "outside.png": "x", "in/" + name: text,
	})
	return root, filepath.Join(root, "in", name)
}

// Both formats, line by line the same rows.
func TestListFormatsAgree(t *testing.T) {
	t.Parallel()
	const csvText = "\uFEFFimage, measurement,name,task,sigma,seed,mask,kernel,param.factor,param.std\r\n" +
		"a.png,,,,,,,,,\n" +
		"a.png,y.npy,first cat,hdr,0.1,18446744073709551615,mask.png,k.npy,4,1e-1\n" +
		"\n" +
		",y.npy,,,0,0,,,,\n" +
		"../outside.png,,,,,,,,,\n" +
		"a.png,,first cat,,,,,,,\n" +
		"\"a.png\",,\"one, two\",,,,,,,\n"
	const jsonlText = "\uFEFF" + `{"image": "a.png"}
{"image": "a.png", "measurement": "y.npy", "name": "first cat", "task": "hdr", "sigma": 0.1, "seed": 18446744073709551615, "mask": "mask.png", "kernel": "k.npy", "param.factor": 4, "param.std": 1e-1}

{"measurement": "y.npy", "sigma": 0, "seed": 0, "image": null}
{"image": "../outside.png"}
{"image": "a.png", "name": "first cat"}
{"image": "a.png", "name": "one, two"}
`
	for name, text := range map[string]string{"list.csv": csvText, "list.jsonl": jsonlText} {
		root, list := writeList(t, name, text)
		rows, skipped, err := collect(t, Dataset{Path: list})
		if err != nil || skipped != nil {
			t.Fatalf("%s: error %v, skipped %q", name, err, skipped)
		}
		in := func(file string) string { return filepath.Join(root, "in", file) }
		want := []Row{
			{Index: 0, Name: "a", Image: in("a.png")},
			{Index: 1, Name: "first cat", Image: in("a.png"), Measurement: in("y.npy"), Overrides: Overrides{
				Task: "hdr", Sigma: ptr(item.Sigma(0.1)), Seed: ptr(uint64(18446744073709551615)),
				Params: map[string]float64{"factor": 4, "std": 0.1}, Mask: in("mask.png"), Kernel: in("k.npy"),
			}},
			{Index: 2, Name: "y", Measurement: in("y.npy"), Overrides: Overrides{Sigma: ptr(item.Sigma(0.0)), Seed: ptr(uint64(0))}},
			{Index: 3, Name: "outside", Image: filepath.Join(root, "outside.png")},
			{Index: 4, Name: "first cat-2", Image: in("a.png")},
			{Index: 5, Name: "one, two", Image: in("a.png")},
		}
		header := strings.Count(name, "csv")
		for i, line := range []int{1, 2, 4, 5, 6, 7} {
			want[i].List, want[i].Line = name, header+line
		}
		if diff := cmp.Diff(want, rows, cmpopts.EquateErrors()); diff != "" {
			t.Errorf("%s: wrong rows (-want +got):\n%s", name, diff)
		}
	}
}

// Every row's error line. A good row before and after shows that nothing else suffers.
func TestListRowErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, list, row, want string }{
		{"missing file", "l.csv", "no.png,,,", `l.csv:3: image: "no.png": no such file or directory`},
		{"directory", "l.csv", "dir.png,,,", `l.csv:3: image: "dir.png": not a regular file but a directory`},
		{"not an image", "l.csv", "y.npy,,,", `l.csv:3: image: "y.npy" is not a supported image, want a file that ends in png, jpg, jpeg, jpe, jfif, tif, tiff, webp, bmp, gif`},
		{"device", "l.csv", ",,,/dev/null", `l.csv:3: mask: "/dev/null": not a regular file but a device`},
		{"neither", "l.csv", ",0.1,1,", "l.csv:3: has neither image nor measurement; give one of them"},
		{"sigma in words", "l.csv", "a.png,little,,", `l.csv:3: sigma: "little" is not a finite number, and not auto`},
		{"sigma NaN", "l.csv", "a.png,NaN,,", `l.csv:3: sigma: "NaN" is not a finite number, and not auto`},
		{"sigma too large", "l.csv", "a.png,1.01,,", "l.csv:3: sigma: 1.01 is out of range, want 0 to 1 (in units of y)"},
		{"seed", "l.csv", "a.png,,-3,", `l.csv:3: seed: "-3" is not an integer from 0 to 18446744073709551615`},
		{"first of two errors", "l.csv", "no.png,x,,", `l.csv:3: image: "no.png": no such file or directory`},
		{"cells", "l.csv", "a.png,,", "l.csv:3: has 3 cells, the header has 4"},
		{"quote", "l.csv", `"a.png,,,`, `l.csv:3: not valid CSV: extraneous or missing " in quoted-field`},
		{"repeated key", "l.jsonl", `{"image": "a.png", "image": "b.PNG"}`, "l.jsonl:3: image: is repeated; remove one"},
		{"key", "l.jsonl", `{"imag": "a.png"}`, `l.jsonl:3: unknown column "imag" (did you mean "image"?)`},
		{"text for a number", "l.jsonl", `{"image": "a.png", "sigma": "0.1"}`, "l.jsonl:3: sigma: want a number"},
		{"number for a text", "l.jsonl", `{"image": 5}`, "l.jsonl:3: image: want text in quotes"},
		{"object for a text", "l.jsonl", `{"image": {"path": "a.png"}}`, "l.jsonl:3: image: want text in quotes"},
		{"number too large", "l.jsonl", `{"image": "a.png", "param.x": 1e999}`, `l.jsonl:3: param.x: "1e999" is not a finite number`},
		{"measurement", "l.jsonl", `{"measurement": "l.jsonl"}`, `l.jsonl:3: measurement: "l.jsonl" is not a stored measurement, want a .npy file or a picture (png, jpg, jpeg, jpe, jfif, tif, tiff, webp, bmp, gif)`},
		{"kernel", "l.jsonl", `{"image": "a.png", "kernel": "no.npy"}`, `l.jsonl:3: kernel: "no.npy": no such file or directory`},
		{"empty name", "l.jsonl", `{"image": "a.png", "name": " "}`, "l.jsonl:3: name: is empty; give a name or leave it out"},
		{"long name", "l.jsonl", `{"image": "a.png", "name": "` + strings.Repeat("é", 101) + `"}`, "l.jsonl:3: name: is longer than 100 characters"},
		{"name with a line break", "l.jsonl", `{"image": "a.png", "name": "a\nb"}`, `l.jsonl:3: name: "a\nb" has control characters; remove them`},
		{"array", "l.jsonl", `["a.png"]`, `l.jsonl:3: want a JSON object, as in {"image": "a.png"}`},
		{"two objects", "l.jsonl", `{"image": "a.png"} {"image": "b.PNG"}`, "l.jsonl:3: has text after the object; write one object per line"},
		{"cut off", "l.jsonl", `{"image": "a.png"`, "l.jsonl:3: not valid JSON: unexpected EOF"},
		{"cut off in a value", "l.jsonl", `{"image":`, "l.jsonl:3: not valid JSON: unexpected EOF"},
		{"words", "l.jsonl", `image a.png`, "l.jsonl:3: not valid JSON: invalid character 'i' looking for beginning of value"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			text := "image,sigma,seed,mask\na.png,,,\n" + tc.row + "\nb.PNG,,,\n"
			if tc.list == "l.jsonl" {
				text = "{\"image\": \"a.png\"}\n\n" + tc.row + "\n{\"image\": \"b.PNG\"}\n"
			}
			_, list := writeList(t, tc.list, text)
			rows, _, err := collect(t, Dataset{Path: list})
			must(t, err)
			if len(rows) != 3 || rows[0].Err != nil || rows[2].Err != nil {
				t.Fatalf("rows %+v", rows)
			}
			if rows[1].Err == nil || rows[1].Err.Error() != tc.want {
				t.Errorf("got:\n%v\nwant:\n%s", rows[1].Err, tc.want)
			}
			if rows[1].Name == "" {
				t.Error("the failing row has no name")
			}
		})
	}
}

// A list that cannot be read to its end must not look like a shorter list.
func TestListEndsWithTheReadersError(t *testing.T) {
	t.Parallel()
	for _, name := range []ListFormat{listCSV, listJSONL, listText} {
		rows := 0
		broken := io.MultiReader(strings.NewReader("{\"image\": \"a.png\"}\n"), failingReader{})
		if name == "csv" {
			broken = io.MultiReader(strings.NewReader("image\na.png\n"), failingReader{})
		}
		last := ReadList(name, broken, nowhere("list"), func(Row) error { rows++; return nil })
		line := map[ListFormat]string{listCSV: "list:3: ", listJSONL: "list:2: ", listText: "list:2: "}[name]
		if last == nil || !strings.Contains(last.Error(), line+"disk on fire") || rows != 1 {
			t.Errorf("%s: %d rows, error %v", name, rows, last)
		}
	}
}

// nowhere is the configuration of a list whose directory does not exist.
func nowhere(file string) ListConfig {
	return ListConfig{File: file, Locate: func(text string) (Place, error) { return LocateFile("/nowhere", text) }}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, fmt.Errorf("disk on fire") }

// A file below the list's directory keeps the directories in its name.
func TestLocateFile(t *testing.T) {
	t.Parallel()
	root, _ := writeList(t, "l.csv", "")
	for text, want := range map[string]string{"in/a.png": "in/a.png", "in/../outside.png": "outside.png", root + "/in/a.png": "in/a.png"} {
		p, err := LocateFile(root, text)
		if err != nil || p.Name != want || p.Address != filepath.Join(root, want) {
			t.Errorf("%s: %+v, error %v", text, p, err)
		}
	}
	if p, err := LocateFile(filepath.Join(root, "in"), "../outside.png"); err != nil || p.Name != "outside.png" {
		t.Errorf("above the directory: %+v, error %v", p, err)
	}
}

// TestSpreadsheetLists: lists as spreadsheets and pandas write them are read, or refused with the remedy.
func TestSpreadsheetLists(t *testing.T) {
	t.Parallel()
	const two = "a = a.png\nb = b.png\n"
	for _, tc := range []struct{ name, list, want, problem string }{
		{"index of pandas", ",image,sigma\n0,a.png,0.05\n1,b.png,0.1\n", two, ""},
		{"separator line", "sep=,\nimage,sigma\na.png,0.05\nb.png,0.1\n", two, ""},
		{"row without values", "image,sigma\na.png,0.05\n,\nb.png,0.1\n", two, ""},
		{"semicolons", "image;sigma\na.png;0,05\n", "", "its cells are not separated by commas; save the list with commas between cells, and points in numbers"},
		{"tabs", "image\tsigma\na.png\t0.05\n", "", "its cells are not separated by commas"},
		{"CR", "image,sigma\ra.png,0.05\r", "", "its lines end in CR alone; save the list with LF or CRLF"},
		{"other columns", "file_name,label\na.png,3\n", "", `with dataset.columns, as in {image: file_name}, other columns are ignored`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			root := plant(t, map[string]string{"l.csv": tc.list, "a.png": "x", "b.png": "x"})
			rows, _, err := collect(t, Dataset{Path: root + "/l.csv"})
			if got := describe(root, rows); got != tc.want || (err == nil) != (tc.problem == "") || err != nil && !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("got %q, error %v", got, err)
			}
		})
	}
}
