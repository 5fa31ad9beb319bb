package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/internal/regular"
	"ddiff/manifest"
	"ddiff/storage/s3test"
)

// TestPullHostile copies from a bucket with results of wrong sizes, names and keys: the copy takes little memory, writes nothing
// outside of its directory and no control character on the terminal, and copies the honest item.
func TestPullHostile(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t, s3test.Options{})
	bucket := server.Bucket(t)
	root := filepath.Join(server.Root, bucket, "out")
	body := []byte("body")
	put := func(id string, artifacts map[string]string) {
		var r manifest.Result
		r.Item.ID, r.Item.Name, r.Item.Task, r.Artifacts = id, "../../../outside\x1b[31m", "hdr", artifacts
		data, err := json.Marshal(r)
		must(t, err)
		folder := filepath.Join(root, "items", id)
		must(t, os.MkdirAll(folder, 0o755))
		write(t, filepath.Join(folder, manifest.FileResult), data)
		write(t, filepath.Join(folder, manifest.FileRestored), body)
	}
	id := func(n int) string { return strings.Repeat(fmt.Sprint(n), 64) }
	digest := regular.SHA256(body)
	put(id(0), map[string]string{manifest.FileRestored: digest})
	for n, name := range []string{"../../outside", "..", "a/b", "\x1b[2J", manifest.FileResult, "/etc/passwd", ""} {
		put(id(n+1), map[string]string{name: digest})
	}
	// Names with control characters, in different places of the listing.
	for _, name := range []string{"4\x1b[2J", "5\x015", "5\na", "zz\x01"} {
		path := filepath.Join(root, "items", name, manifest.FileResult)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		write(t, path, []byte("{}"))
	}
	// Eight copies run at once.
	for n := range 8 {
		path := filepath.Join(root, "items", fmt.Sprint("huge", n), manifest.FileResult)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		write(t, path, []byte("{"))
		must(t, os.Truncate(path, 300<<20))
	}
	parent := t.TempDir()
	dir := filepath.Join(parent, "a", "b")
	e := boundedIn(t, 200, []string{"AWS_ACCESS_KEY_ID=" + server.AccessKey, "AWS_SECRET_ACCESS_KEY=" + server.SecretKey},
		"pull", "s3://"+bucket+"/out?endpoint="+server.Endpoint, dir)
	wantCode(t, e, 3)
	wantLine(t, e, "items=16 copied=1 present=0 unfinished=0 wrong=15")
	wantMessage(t, e, "huge0/result.json", "object too large")
	wantMessage(t, e, id(5), "is not a file of an item")
	wantMessage(t, e, "skipped \"items/zz", "remove the object")
	if n := strings.Count(e.stderr, "skipped "); n != 4 {
		t.Errorf("%d names are skipped, want 4\n%s", n, e.stderr)
	}
	if strings.ContainsAny(e.stdout+e.stderr, "\x1b") {
		t.Errorf("a control character is printed\n%q", e.stderr)
	}
	must(t, filepath.WalkDir(parent, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && (!strings.HasPrefix(path, dir+"/") || strings.ContainsAny(path, "\x1b")) {
			t.Errorf("%s is outside of the copy", path)
		}
		return err
	}))
	if len(read(t, filepath.Join(dir, "items", id(0), manifest.FileRestored))) != len(body) {
		t.Error("the honest item is missing")
	}
}
