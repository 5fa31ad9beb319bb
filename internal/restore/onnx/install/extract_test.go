package install

import (
	"archive/zip"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func zipball(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var buffer bytes.Buffer
	writer := zip.NewWriter(&buffer)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		content := e.content
		if e.link != "" {
			header.SetMode(os.ModeSymlink | 0o777)
			content = e.link
		}
		w, err := writer.CreateHeader(header)
		must(t, err)
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	must(t, writer.Close())
	return buffer.Bytes()
}

func TestExtract(t *testing.T) {
	t.Parallel()
	good := []entry{{name: "p/lib.so", content: "code"}, {name: "p/NOTICE", content: "MIT"}}
	tests := map[string]struct {
		entries []entry
		wantErr error
	}{
		"good":                {append([]entry{{name: "../other", content: "?"}, {name: "p/a..b", content: "?"}}, good...), nil},
		"link for a library":  {[]entry{{name: "p/lib.so", link: "/etc/passwd"}, good[1]}, ErrChecksum},
		"missing":             {good[:1], ErrChecksum},
		"other content":       {[]entry{{name: "p/lib.so", content: "CODE"}, good[1]}, ErrChecksum},
		"longer":              {[]entry{{name: "p/lib.so", content: "code, and more"}, good[1]}, ErrChecksum},
		"shorter":             {[]entry{{name: "p/lib.so", content: "cod"}, good[1]}, ErrChecksum},
		"first of two counts": {append(good[:2:2], entry{name: "p/lib.so", content: "evil"}), nil},
	}
	for name, test := range tests {
		for format, packed := range map[string][]byte{tarGzip: tarball(t, test.entries...), zipped: zipball(t, test.entries...)} {
			t.Run(name+map[bool]string{true: " tar", false: " zip"}[format == tarGzip], func(t *testing.T) {
				t.Parallel()
				root := t.TempDir()
				path, dir := filepath.Join(root, "archive"), filepath.Join(root, "out")
				write(t, path, packed)
				must(t, os.Mkdir(dir, 0o755))
				r := pin(packed, format, "p/lib.so", "code", "p/NOTICE", "MIT")
				err := r.Sources[0].extract(t.Context(), path, dir)
				if !errors.Is(err, test.wantErr) {
					t.Fatalf("got %v, want %v", err, test.wantErr)
				}
				if err == nil && (string(read(t, filepath.Join(dir, "lib.so"))) != "code" || string(read(t, filepath.Join(dir, "NOTICE"))) != "MIT") {
					t.Error("wrong content")
				}
				if entries, err := os.ReadDir(root); err != nil || len(entries) != 2 {
					t.Errorf("entries outside of the destination: %v, %v", entries, err)
				}
			})
		}
	}
}
