package dataset_test

import (
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/internal/dataset"
	"ddiff/manifest"
	"ddiff/storage"
)

// foreignBucket serves a bucket with objects of any names, which it escapes in listings if the client asks for it and encodes is true.
func foreignBucket(t *testing.T, objects map[string][]byte, encodes bool) (allow func(*dataset.Config)) {
	t.Helper()
	type object struct {
		Key          string
		LastModified string
		ETag         string
		Size         int
	}
	type listing struct {
		XMLName      xml.Name `xml:"ListBucketResult"`
		Name         string
		EncodingType string `xml:",omitempty"`
		IsTruncated  bool
		Contents     []object
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/data"), "/")
		query := r.URL.Query()
		if key == "" && !query.Has("location") && r.Method == http.MethodGet {
			l := listing{Name: "data"}
			escape := func(name string) string { return name }
			if encodes && query.Get("encoding-type") == "url" {
				l.EncodingType, escape = "url", url.QueryEscape
			}
			for _, name := range slices.Sorted(maps.Keys(objects)) {
				if strings.HasPrefix(name, query.Get("prefix")) && name > query.Get("start-after") {
					l.Contents = append(l.Contents, object{escape(name), "2026-01-01T00:00:00.000Z", `"e"`, len(objects[name])})
				}
			}
			w.Header().Set("Content-Type", "application/xml")
			if err := xml.NewEncoder(w).Encode(l); err != nil {
				t.Error(err)
			}
			return
		}
		if key == "" {
			w.Header().Set("Content-Type", "application/xml")
			fmt.Fprint(w, `<LocationConstraint xmlns="http://s3.amazonaws.com/doc/2006-03-01/">us-east-1</LocationConstraint>`)
			return
		}
		data, ok := objects[key]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "<Error><Code>NoSuchKey</Code></Error>")
			return
		}
		w.Header().Set("ETag", `"e"`)
		http.ServeContent(w, r, "", time.Unix(1e9, 0), strings.NewReader(string(data)))
	}))
	t.Cleanup(server.Close)
	return func(c *dataset.Config) {
		c.S3 = storage.S3Config{Endpoint: server.URL, Addressing: storage.AddressingPath, AccessKey: "user", SecretKey: "password"}
	}
}

// TestAttackBucketNames: each object of a bucket is read, fails with its reason, or is counted as skipped, whatever its name. Its names need
// not be keys of a store.
func TestAttackBucketNames(t *testing.T) {
	t.Parallel()
	readable := []string{
		"/lead.png", "a.png", "a//b.png", "a/../c.png", "a/./d.png", "a/tab\tf.png", "a/new\nline.png", "a/esc\x1b[2J.png", `a\win.png`,
		"a/q?x=1#f.png", "a/100%.png", "a/sp ace+plus.png", "a/漢字.png", strings.Repeat("x", 300) + ".png", strings.Repeat(strings.Repeat("y", 100)+"/", 6) + "z.png",
		strings.Repeat("m", 1020) + ".png", "ok.png", "trailing /x.png",
	}
	objects := map[string][]byte{}
	for i, name := range readable {
		objects[name] = picture(t, i)
	}
	objects["a/"], objects["a/empty.png"], objects["notes.txt"], objects[".tmp/z.png"] = nil, nil, []byte("text"), picture(t, 99)
	all, skipped, err := rows(t, sources(t, foreignBucket(t, objects, true)), manifest.Dataset{Path: "s3://data"})
	must(t, err)
	s := sources(t, foreignBucket(t, objects, true))
	found, failed := map[string]bool{}, 0
	for _, row := range all {
		if row.Err != nil {
			failed++
			continue
		}
		data, err := s.Get(t.Context(), row.Image)
		if err != nil {
			t.Errorf("get %s: %v", row.Image, err)
			continue
		}
		for name, other := range objects {
			if string(other) == string(data) {
				found[name] = true
			}
		}
		if strings.ContainsFunc(row.Image, func(r rune) bool { return r < ' ' }) {
			t.Errorf("the address %q has control characters", row.Image)
		}
	}
	for _, name := range readable {
		if !found[name] {
			t.Errorf("the object %q is not read", name)
		}
	}
	if failed != 1 || len(skipped) != 2 { // empty.png; notes.txt and .tmp/z.png
		t.Errorf("%d rows fail, skipped %q", failed, skipped)
	}
	names, images := validRows(t, s, manifest.Dataset{Path: "s3://data/.tmp"})
	if len(names) != 1 || len(images) != 1 || string(images[0]) != string(objects[".tmp/z.png"]) {
		t.Errorf("a prefix that is named has %q", names)
	}
}

// TestAttackReplacedNames: names that a server lists with replaced characters are failed rows with the reason.
func TestAttackReplacedNames(t *testing.T) {
	t.Parallel()
	objects := map[string][]byte{"a\x01.png": picture(t, 1), "b.png": picture(t, 2)}
	all, _, err := rows(t, sources(t, foreignBucket(t, objects, false)), manifest.Dataset{Path: "s3://data"})
	must(t, err)
	if len(all) != 2 || all[0].Err == nil || !strings.Contains(all[0].Err.Error(), "rename the object") || all[1].Err != nil {
		t.Errorf("rows %+v, want one that fails and one that does not", all)
	}
}
