package dataset_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/internal/dataset"
	"ddiff/manifest"
)

// Local directories, globs and lists have the same rows as in package manifest.
func TestLocalRowsMatchManifest(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for i, name := range []string{"a.png", "b.png", "sub/c.png"} {
		write(t, folder, name, picture(t, i))
	}
	write(t, folder, "notes.md", []byte("x"))
	write(t, folder, "list.csv", []byte("image,task\nb.png,hdr\nno.png,\n"))
	write(t, folder, "list.jsonl", []byte(`{"image": "b.png"}`))
	write(t, folder, "list.txt", []byte("# images\nb.png\n"))
	s := sources(t, nil)
	for _, d := range []manifest.Dataset{
		{Path: folder}, {Path: folder, Recursive: true}, {Path: folder, Limit: 1}, {Path: folder + "/*.png"},
		{Path: folder + "/b.png"}, {Path: folder + "/list.csv"}, {Path: folder + "/list.jsonl"}, {Path: folder + "/list.txt"},
		{Path: manifest.LocalPrefix + folder}, {Path: folder + "/missing"}, {Path: folder + "/missing.csv"}, {Path: folder + "/notes.md"}, {Path: ""},
	} {
		var theirs, ours []string
		describe := func(row manifest.Row, err error) string { return fmt.Sprintf("%+v %v %v", row, row.Err, err) }
		for row, err := range manifest.Rows(t.Context(), d, nil) {
			theirs = append(theirs, describe(row, err))
		}
		for row, err := range s.Rows(t.Context(), d, nil) {
			ours = append(ours, describe(row, err))
		}
		if d.Path == folder+"/missing.csv" { // the messages differ
			if len(ours) != 1 || !strings.HasSuffix(ours[0], "no dataset there: no such file or directory; check dataset.path") {
				t.Errorf("%s: %q", d.Path, ours)
			}
			continue
		}
		if a, b := strings.Join(ours, "\n"), strings.Join(theirs, "\n"); a != b {
			t.Errorf("%+v: got\n%s\nwant\n%s", d, a, b)
		}
	}
}

// A local list may name files, shards, web resources and buckets.
func TestLocalListOfAddresses(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write(t, folder, "a.png", picture(t, 1))
	write(t, folder, "list.csv", []byte("image,sha256,width,height\n"+
		"a.png,"+strings.Repeat("AB", 32)+",8,9\n"+
		"https://example.org/photos/b.png?size=1,,,\n"+
		"https://example.org/c,,,\n"+
		"s3://bucket/photos/d.png?endpoint=https://s3.example,,,\n"+
		"ftp://example.org/e.png,,,\n"+
		"https://user:secret@example.org/f.png,,,\n"+
		"http://example.org/g.png,,,\n"+
		"https://127.0.0.1/h.png,,,\n"+
		"s3://bucket/notes.md,,,\n"+
		"a.png,ab,,\n"+
		"a.png,,8,\n"+
		"tar+https://example.org/s.tar#offset=512&size=9&name=i.png,,,\n"+
		"tar+https://example.org/s.tar#offset=512,,,\n"))
	all, _, err := rows(t, sources(t, nil), manifest.Dataset{Path: filepath.Join(folder, "list.csv")})
	must(t, err)
	var got strings.Builder
	for _, r := range all {
		fmt.Fprintf(&got, "%s = %s %.4s %d %d", r.Name, strings.TrimPrefix(r.Image, folder), r.ImageSHA256, r.Width, r.Height)
		if r.Err != nil {
			fmt.Fprintf(&got, " ! %v", r.Err)
		}
		got.WriteByte('\n')
	}
	const want = `a = /a.png abab 8 9
b = https://example.org/photos/b.png?size=1  0 0
c = https://example.org/c  0 0
d = s3://bucket/photos/d.png?endpoint=https://s3.example  0 0
line-6 =   0 0 ! list.csv:6: image: not an address: scheme "ftp" is not supported; use file, s3 or https
line-7 =   0 0 ! list.csv:7: image: not an address: URL contains credentials; set them in the environment
g = http://example.org/g.png  0 0 ! list.csv:8: image: refused: http:// is not encrypted; use https://, or --allow-http
h = https://127.0.0.1/h.png  0 0 ! list.csv:9: image: refused: 127.0.0.1 is not a public address; allow its network with --allow-network
notes = s3://bucket/notes.md  0 0 ! list.csv:10: image: "notes.md" is not a supported image, want a file that ends in png, jpg, jpeg, jpe, jfif, tif, tiff, webp, bmp, gif
a-2 = /a.png  0 0 ! list.csv:11: sha256: "ab" is not a SHA-256, want 64 hexadecimal digits
a-3 = /a.png  8 0 ! list.csv:12: has only one of width and height; give both or none
i = tar+https://example.org/s.tar#name=i.png&offset=512&size=9  0 0
line-14 =   0 0 ! list.csv:14: image: not an address: member of a tar file needs offset and size
`
	if got.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", got.String(), want)
	}
}

func TestBracesExpand(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for i := range 3 {
		write(t, folder, fmt.Sprintf("part-%02d/x.png", i), picture(t, i))
		write(t, folder, fmt.Sprintf("list-%d.txt", i), []byte(fmt.Sprintf("part-%02d/x.png\n", i)))
	}
	s := sources(t, nil)
	names, images := validRows(t, s, manifest.Dataset{Path: folder + "/part-{00..02}"})
	want(t, names, images, "x x-2 x-3", 0, 1, 2)
	names, images = validRows(t, s, manifest.Dataset{Path: folder + "/list-{2,0}.txt"})
	want(t, names, images, "part-02/x part-00/x", 2, 0)
	names, images = validRows(t, s, manifest.Dataset{Path: folder + "/list-{2,0}.txt", Limit: 1})
	want(t, names, images, "part-02/x", 2)

	// A missing part is a failed row and does not end the other parts.
	all, _, err := rows(t, s, manifest.Dataset{Path: folder + "/list-{1..3}.txt"})
	if err != nil || len(all) != 3 || all[0].Err != nil || all[1].Err != nil || !errors.Is(all[2].Err, os.ErrNotExist) {
		t.Errorf("%+v, error %v", all, err)
	}
	for path, problem := range map[string]string{
		"/list-{3..1}.txt":       "{3..1} in dataset.path does not count up",
		"/list-{0..9999999}.txt": "expand to more than 100000 paths",
	} {
		_, _, err := rows(t, s, manifest.Dataset{Path: "/nowhere" + path, Limit: 5})
		if !errors.Is(err, manifest.ErrNoDataset) || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestRowsCancelled(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write(t, folder, "a.png", picture(t, 0))
	list := write(t, folder, "list.txt", bytes.Repeat([]byte("a.png\n"), 100))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	var last error
	for _, err := range sources(t, nil).Rows(ctx, manifest.Dataset{Path: list}, nil) {
		last = err
		if n++; n == 3 {
			cancel()
		}
	}
	if n != 4 || !errors.Is(last, context.Canceled) {
		t.Errorf("%d pairs, the last with %v", n, last)
	}
}

// Errors of invalid paths are one line without the secrets of an address.
func TestPathErrors(t *testing.T) {
	t.Parallel()
	s := sources(t, nil)
	for path, want := range map[string]string{
		"https://example.org/":                          "want a list (.csv, .jsonl, .txt, .parquet), a shard (.tar) or an image",
		"https://example.org/page.html?sig=S1":          "want a list",
		"ftp://example.org/x.csv?sig=S1":                `scheme "ftp" is not supported`,
		"http://example.org/x.csv?sig=S1":               "http:// is not encrypted",
		"https://u:S1@example.org/x.csv":                "URL contains credentials",
		"https://10.0.0.1/x.csv":                        "10.0.0.1 is not a public address",
		"s3://B/photos":                                 "is not a bucket name",
		"s3://bucket/x?endpint=y":                       `parameter "endpint" is unknown`,
		"tar+https://example.org/x.tar#offset=0&size=1": "part of an object is not a dataset",
	} {
		all, _, err := rows(t, s, manifest.Dataset{Path: path})
		if len(all) != 0 || err == nil || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "S1") {
			t.Errorf("%s: %d rows, error %v", path, len(all), err)
		}
	}
}

func TestConfigNamesTheField(t *testing.T) {
	t.Parallel()
	for field, cfg := range map[string]dataset.Config{
		"Hosts": {Hosts: []string{"https://example.org/"}}, "Networks": {Networks: make([]netip.Prefix, 1)},
		"CAFile": {CAFile: "/nowhere/ca.pem", CacheDir: t.TempDir()},
	} {
		if _, err := dataset.New(cfg); err == nil || !strings.Contains(err.Error(), "field "+field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// A prefix without images states whether it has other files.
func TestEmptyPrefix(t *testing.T) {
	t.Parallel()
	name, _, allow := bucket(t, map[string][]byte{"p/notes.txt": []byte("x")})
	for prefix, want := range map[string]string{"q": "nothing is there", "p": "skipped 1 entries that are not images"} {
		_, _, err := rows(t, sources(t, allow), manifest.Dataset{Path: "s3://" + name + "/" + prefix})
		if !errors.Is(err, manifest.ErrEmptyDataset) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", prefix, err, want)
		}
	}
}
