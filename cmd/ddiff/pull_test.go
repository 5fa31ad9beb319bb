package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/regular"
	"ddiff/internal/s3test"
	"ddiff/restore/item"
	"ddiff/storage"
)

// bucketRun restores a photograph on two tasks to a bucket, and returns the address of the output, its store, and a
// function that runs ddiff with the credentials.
func bucketRun(t *testing.T) (place string, store *storage.S3, program func(args ...string) ended) {
	t.Helper()
	server := s3test.Start(t, s3test.Options{})
	bucket := server.Bucket(t)
	var cmd *exec.Cmd
	cmd, place = toS3(t, server, bucket, server.SecretKey, small(photograph("chelsea"), "--task", "hdr,super_resolution", "--steps", "5", "-q")...)
	wantCode(t, end(t, cmd), 0)
	cfg := server.Config(bucket)
	cfg.Prefix = "campaigns/one"
	store, err := storage.OpenS3(t.Context(), cfg)
	must(t, err)
	t.Cleanup(store.Close)
	return place, store, func(args ...string) ended {
		cmd := command(t, args...)
		cmd.Env = append(cmd.Env, "AWS_ACCESS_KEY_ID="+server.AccessKey, "AWS_SECRET_ACCESS_KEY="+server.SecretKey)
		return end(t, cmd)
	}
}

// TestPull copies an output from a bucket, in parts and again, and checks what arrives. An image in the bucket is verified and replayed.
func TestPull(t *testing.T) {
	skipLong(t)
	t.Parallel()
	place, store, run := bucketRun(t)
	dir := filepath.Join(t.TempDir(), "copy")
	must(t, store.Put(t.Context(), "tuning/0123.json", []byte("record")))
	failed := item.Result{Outcome: item.OutcomeFailed, Reason: "damaged"}
	failed.Item.ID, failed.Item.Name, failed.Item.Task, failed.Item.Method = strings.Repeat("f", 64), "broken", "hdr", "ddiff"
	line, err := json.Marshal(failed)
	must(t, err)
	failed.Item.ID, failed.Item.Task = strings.Repeat("e", 64), "super_resolution"
	second, err := json.Marshal(failed)
	must(t, err)
	must(t, store.Put(t.Context(), "failures/one/000000.jsonl", slices.Concat(line, []byte("\n"), second, []byte("\n"))))
	for _, folder := range []string{"tuning", "failures", "scores", "sheets", "figures"} { // an output inside, which a copy of this one cannot check
		must(t, store.Put(t.Context(), folder+"/inner/"+item.Key(strings.Repeat("0", 64), item.FileRestored), []byte("picture")))
	}

	e := run("pull", place, dir, "--task", "hdr")
	wantCode(t, e, 0)
	wantLine(t, e, "items=1 copied=1 present=0 unfinished=0 wrong=0 dir="+dir)
	wantItems(t, dir, 1)
	wantNames(t, dir, "chelsea.hdr.png")
	if _, err := os.Stat(filepath.Join(dir, "results.csv")); !os.IsNotExist(err) {
		t.Errorf("a part of an output has the report of the whole: %v", err)
	}
	read(t, filepath.Join(dir, "tuning", "0123.json"))
	must(t, os.Remove(filepath.Join(dir, "tuning", "0123.json"))) // the report could not decode it
	e = run("report", dir)
	wantCode(t, e, 0)
	wantLine(t, e, "1 of 2 items have no figures: 1 failed") // the other one is of another task
	wantCode(t, run("pull", place, dir, "--task", "super_resolution", "--item", "eeee"), 2)
	if lines := bytes.Count(read(t, filepath.Join(dir, "failures", "one", "000000.jsonl")), []byte("\n")); lines != 2 {
		t.Errorf("after another pull the directory has %d failures, want 2", lines)
	}
	e = run("pull", place, dir)
	wantCode(t, e, 0)
	wantLine(t, e, "items=2 copied=1 present=1")
	for id := range wantItems(t, dir, 2) {
		e := run("verify", strings.Replace(place, "?", "/items/"+id+"?", 1))
		wantCode(t, e, 0)
		wantLine(t, e, "s3://", "/items/"+id+"/restored.png", ": ok")
		e = run("replay", strings.Replace(place, "?", "/items/"+id+"?", 1), "--threads", "1")
		wantCode(t, e, 0)
		wantLine(t, e, "replay=", "measurement=bit-equal")
	}
	e = run("replay", place)
	wantCode(t, e, 2)
	wantMessage(t, e, "has several images")
	wantNames(t, dir, "chelsea.hdr.png", "chelsea.super_resolution.png")
	for _, name := range []string{"results.csv", "index.html", "summary.json", "sheets/hdr.png", "figures/captions.md"} {
		read(t, filepath.Join(dir, filepath.FromSlash(name)))
	}
	if inner, err := filepath.Glob(filepath.Join(dir, "*", "inner")); err != nil || len(inner) > 0 {
		t.Errorf("the copy has the outputs inside %q (%v)", inner, err)
	}
	e = run("verify", dir)
	wantCode(t, e, 0)
	wantLine(t, e, "checked=2 ok=2 wrong=0")

	// A damaged object is refused, the rest arrives.
	var broken string
	for id, r := range items(t, dir) {
		if r.Item.Task == "hdr" {
			broken = id
		}
	}
	key := item.Key(broken, item.FileTrace)
	data, err := store.Get(t.Context(), key)
	must(t, err)
	must(t, store.Put(t.Context(), key, append(bytes.Clone(data), ' ')))
	other := filepath.Join(t.TempDir(), "other")
	e = run("pull", place, other, "--json")
	wantCode(t, e, 3)
	wantMessage(t, e, key+": has the SHA-256")
	var counts map[string]int
	must(t, json.Unmarshal([]byte(e.stdout), &counts))
	if counts["items"] != 2 || counts["copied"] != 1 || counts["wrong"] != 1 {
		t.Errorf("the counts are %v", counts)
	}
	wantItems(t, other, 1)
	e = run("verify", place)
	wantCode(t, e, 3)
	wantLine(t, e, "s3://", key, "it was changed")
	wantLine(t, e, "checked=2 ok=1 wrong=1")

	// Mended, the same command finishes the copy.
	must(t, store.Put(t.Context(), key, data))
	must(t, store.Delete(t.Context(), item.Key(broken, item.FileTruth)))
	wantCode(t, run("pull", place, other), 3)
	wantCode(t, run("pull", place, other, "--item", "ffffffff"), 2)
	wantMessage(t, run("pull", place, other, "--item", "ffffffff"), "has no items with an id that begins with ffffffff")
}

// TestPullRefuses checks the messages of wrong arguments.
func TestPullRefuses(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	wantRefusals(t, nil, []refusal{
		{[]string{"pull", "s3://bucket"}, 2, "pull: 1 argument; usage: ddiff pull SOURCE DIR; see: ddiff pull --help"},
		{[]string{"pull", empty, "s3://bucket"}, 2, "DIR s3://bucket is an address"},
		{[]string{"pull", empty, t.TempDir()}, 2, "has no items; check the address"},
		{[]string{"pull", filepath.Join(empty, "none"), t.TempDir()}, 2, "none: no such directory; give s3://bucket/prefix"},
		{[]string{"pull", "ftp://host/x", t.TempDir()}, 2, "ftp"},
		{[]string{"verify", empty}, 2, "neither that of an item nor an output"},
		{[]string{"verify", "ftp://host/x"}, 2, "ftp"},
		{[]string{"verify"}, 2, "verify: 0 arguments; usage: ddiff verify OUTPUT...; see: "},
	})
}

// TestPullOversizedResult reports a result that exceeds the size limit of the store, and does not stop at it.
func TestPullOversizedResult(t *testing.T) {
	t.Parallel()
	source, id := t.TempDir(), strings.Repeat("a", 64)
	must(t, os.MkdirAll(filepath.Dir(file(source, id, item.FileResult)), 0o755))
	write(t, file(source, id, item.FileResult), nil)
	must(t, os.Truncate(file(source, id, item.FileResult), 2<<30)) // sparse
	e := ddiff(t, "pull", source, t.TempDir())
	wantCode(t, e, 3)
	wantMessage(t, e, item.Key(id, item.FileResult), "object too large")
	wantLine(t, e, "items=1 copied=0 present=0 unfinished=0 wrong=1 ")
}

// TestPullHostile copies from a bucket with results of wrong sizes, names and keys: the copy takes little memory, writes nothing
// outside of its directory and no control character on the terminal, and copies the honest item.
func TestPullHostile(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t, s3test.Options{})
	bucket := server.Bucket(t)
	root := filepath.Join(server.Root, bucket, "out")
	body := []byte("body")
	put := func(id string, artifacts map[string]string) {
		var r item.Result
		r.Item.ID, r.Item.Name, r.Item.Task, r.Artifacts = id, "../../../outside\x1b[31m", "hdr", artifacts
		data, err := json.Marshal(r)
		must(t, err)
		folder := filepath.Join(root, "items", id)
		must(t, os.MkdirAll(folder, 0o755))
		write(t, filepath.Join(folder, item.FileResult), data)
		write(t, filepath.Join(folder, item.FileRestored), body)
	}
	id := func(n int) string { return strings.Repeat(fmt.Sprint(n), 64) }
	digest := regular.SHA256(body)
	put(id(0), map[string]string{item.FileRestored: digest})
	for n, name := range []string{"../../outside", "..", "a/b", "\x1b[2J", item.FileResult, "/etc/passwd", ""} {
		put(id(n+1), map[string]string{name: digest})
	}
	// Names with control characters, in different places of the listing.
	for _, name := range []string{"4\x1b[2J", "5\x015", "5\na", "zz\x01"} {
		path := filepath.Join(root, "items", name, item.FileResult)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		write(t, path, []byte("{}"))
	}
	// Eight copies run at once.
	for n := range 8 {
		path := filepath.Join(root, "items", fmt.Sprint("huge", n), item.FileResult)
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
	wantMessage(t, e, "skipped \"items/zz", "not a name of ddiff")
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
	if len(read(t, filepath.Join(dir, "items", id(0), item.FileRestored))) != len(body) {
		t.Error("the honest item is missing")
	}
}
