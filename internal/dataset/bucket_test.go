package dataset_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/internal/dataset"
	"ddiff/manifest"
)

func TestBucketPrefix(t *testing.T) {
	t.Parallel()
	objects := map[string][]byte{
		"photos/b.png": picture(t, 1), "photos/a.png": picture(t, 2), "photos/sub/a.jpg": picture(t, 3),
		"photos/with space & more?#%.png": picture(t, 4), "photos/.hidden/x.png": picture(t, 5),
		"photos/notes.txt": []byte("x"), "photos/empty.png": {}, "photos-2/x.png": picture(t, 6),
	}
	name, server, allow := bucket(t, objects)
	s := sources(t, allow)
	all, skipped, err := rows(t, s, manifest.Dataset{Path: "s3://" + name + "/photos"})
	must(t, err)
	var got []string
	for _, r := range all {
		got = append(got, r.Name)
		if r.Name == "empty.png" {
			if r.Err == nil || !strings.Contains(r.Err.Error(), "is an empty file") {
				t.Errorf("empty: %v", r.Err)
			}
			continue
		}
		if data, err := s.Get(t.Context(), r.Image); err != nil || !bytes.Equal(data, objects["photos/"+r.Name]) {
			t.Errorf("%s: wrong bytes, error %v", r.Image, err)
		}
	}
	if names := strings.Join(got, "|"); names != "a.png|b.png|empty.png|sub/a.jpg|with space & more?#%.png" {
		t.Errorf("names %s", names)
	}
	if len(skipped) != 2 || skipped[0] != "s3://"+name+"/photos/.hidden/x.png" || skipped[1] != "s3://"+name+"/photos/notes.txt" {
		t.Errorf("skipped %q", skipped)
	}

	// The complete bucket. Rows inherit the parameters of the address.
	query := "?endpoint=" + url.QueryEscape(server.Endpoint) + "&region=us-east-1&path_style=true"
	own := sources(t, func(c *dataset.Config) {
		allow(c)
		c.S3.Endpoint, c.Endpoints = "http://127.0.0.1:1", []string{server.Endpoint}
	})
	names, _ := validRows(t, own, manifest.Dataset{Path: "s3://" + name + query, Limit: 2})
	if strings.Join(names, " ") != "photos-2/x.png photos/a.png" {
		t.Errorf("names %q", names)
	}
	names, images := validRows(t, own, manifest.Dataset{Path: "s3://" + name + "/photos/b.png" + query})
	want(t, names, images, "b", 1)

	// A service restricts the servers of signed requests.
	closed := sources(t, func(c *dataset.Config) { allow(c); c.S3.Endpoint = "http://127.0.0.1:1"; c.Endpoints = []string{} })
	if _, _, err := rows(t, closed, manifest.Dataset{Path: "s3://" + name + query}); !errors.Is(err, dataset.ErrRefused) {
		t.Errorf("endpoint that is not allowed: %v", err)
	}
	if _, err := closed.Get(t.Context(), "s3://"+name+"/photos/b.png"+query); !errors.Is(err, dataset.ErrRefused) {
		t.Errorf("endpoint that is not allowed: %v", err)
	}
	for path, want := range map[string]error{
		"s3://" + name + "/nothing":     manifest.ErrEmptyDataset,
		"s3://no-such-bucket-here":      dataset.ErrNotFound,
		"s3://" + name + "/missing.csv": dataset.ErrNotFound,
	} {
		if _, _, err := rows(t, s, manifest.Dataset{Path: path}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	if _, err := s.Get(t.Context(), "s3://"+name+"/photos/none.png"); !errors.Is(err, dataset.ErrNotFound) {
		t.Errorf("missing object: %v", err)
	}
	wrong := sources(t, func(c *dataset.Config) { allow(c); c.S3.AccessKey = "nobody" })
	if _, _, err := rows(t, wrong, manifest.Dataset{Path: "s3://" + name}); !errors.Is(err, dataset.ErrDenied) {
		t.Errorf("wrong credentials: %v", err)
	}
	small := sources(t, func(c *dataset.Config) { allow(c); c.MaxBytes = 10 })
	if _, err := small.Get(t.Context(), "s3://"+name+"/photos/a.png"); !errors.Is(err, dataset.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	server.Stop()
	if _, err := s.Get(t.Context(), "s3://"+name+"/photos/a.png"); !errors.Is(err, dataset.ErrUnavailable) {
		t.Errorf("server gone: %v", err)
	}
}

// A listed object of the largest size is valid, and one byte more is a problem of its row.
func TestBucketPrefixLimit(t *testing.T) {
	t.Parallel()
	name, _, allow := bucket(t, map[string][]byte{"p/a.png": make([]byte, 1<<20), "p/b.png": make([]byte, 1<<20+1)})
	s := sources(t, func(c *dataset.Config) { allow(c); c.MaxBytes = 1 << 20 })
	all, _, err := rows(t, s, manifest.Dataset{Path: "s3://" + name + "/p"})
	if err != nil || len(all) != 2 || all[0].Err != nil || !errors.Is(all[1].Err, dataset.ErrTooLarge) {
		t.Errorf("rows %+v, %v", all, err)
	}
}

func TestBucketListsAndShards(t *testing.T) {
	t.Parallel()
	objects := map[string][]byte{"data/img/0.png": picture(t, 0), "data/img/1.png": picture(t, 1)}
	name, server, allow := bucket(t, nil)
	objects["data/list.csv"] = []byte("image,name\nimg/0.png,zero\ns3://" + name + "/data/img/1.png,one\n")
	objects["data/evil.csv"] = []byte("image\n../x.png\n/etc/x.png\ns3://other/x.png?endpoint=https://thief.example\n")
	for i := range 3 {
		objects[fmt.Sprintf("shards/%03d.tar", i)] = tarFile(t,
			memberFile{fmt.Sprintf("%d-a.png", i), picture(t, 10*i)}, memberFile{fmt.Sprintf("%d-b.png", i), picture(t, 10*i+1)})
	}
	objects["data/photos.parquet"] = photosParquet(t, 3)
	for key, data := range objects {
		write(t, filepath.Join(server.Root, name), key, data)
	}
	s := sources(t, allow)
	names, images := validRows(t, s, manifest.Dataset{Path: "s3://" + name + "/data/list.csv"})
	want(t, names, images, "zero one", 0, 1)
	names, images = validRows(t, s, manifest.Dataset{Path: "s3://" + name + "/shards/{000..002}.tar"})
	want(t, names, images, "0-a 0-b 1-a 1-b 2-a 2-b", 0, 1, 10, 11, 20, 21)
	names, images = validRows(t, s, manifest.Dataset{Path: "s3://" + name + "/data/photos.parquet"})
	want(t, names, images, "cat-0 cat-1 cat-2", 0, 1, 2)
	all, _, err := rows(t, s, manifest.Dataset{Path: "s3://" + name + "/data/evil.csv"})
	if err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	for _, r := range all {
		if !errors.Is(r.Err, dataset.ErrRefused) {
			t.Errorf("%s: %v", r.Image, r.Err)
		}
	}
}

// A bucket of several pages is listed in order, and the listing ends when the consumer leaves the loop.
func TestBucketPages(t *testing.T) {
	t.Parallel()
	const objects = 2300
	name, server, allow := bucket(t, nil)
	for i := range objects {
		write(t, filepath.Join(server.Root, name), fmt.Sprintf("many/%05d.png", i), []byte("x"))
	}
	s := sources(t, allow)
	all, _, err := rows(t, s, manifest.Dataset{Path: "s3://" + name + "/many"})
	if err != nil || len(all) != objects {
		t.Fatalf("%d rows, error %v", len(all), err)
	}
	for i, r := range all {
		if want := fmt.Sprintf("%05d.png", i); r.Name != want || r.Image != "s3://"+name+"/many/"+want {
			t.Fatalf("row %d is %+v", i, r)
		}
	}
}
