package dataset_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/internal/dataset"
	"ddiff/manifest"
)

// The same list in every format, from servers with and without support for ranges.
func TestWebLists(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for i := range 3 {
		write(t, folder, fmt.Sprintf("data/photos/%d.png", i), picture(t, i))
	}
	write(t, folder, "data/list.csv", []byte("image,name\nphotos/0.png,zero\nHERE/data/photos/1.png,one\n"))
	for _, parts := range []bool{true, false} {
		base, allow := webServer(t, folder, func(_ http.ResponseWriter, r *http.Request) bool {
			if !parts {
				r.Header.Del("Range")
			}
			return false
		})
		write(t, folder, "data/list.csv", []byte("image,name\nphotos/0.png,zero\n"+base+"/data/photos/1.png,one\n"))
		write(t, folder, "data/list.jsonl", []byte(`{"image": "photos/2.png"}`+"\n"+`{"image": "photos/1.png?x=y"}`))
		write(t, folder, "data/list.txt", []byte("photos/1.png\n"+base+"/data/photos/0.png\n"))
		s := sources(t, allow)
		names, images := validRows(t, s, manifest.Dataset{Path: base + "/data/list.csv"})
		want(t, names, images, "zero one", 0, 1)
		names, images = validRows(t, s, manifest.Dataset{Path: base + "/data/list.jsonl?sig=1"})
		want(t, names, images, "photos/2 photos/1", 2, 1)
		names, images = validRows(t, s, manifest.Dataset{Path: base + "/data/list.txt"})
		want(t, names, images, "photos/1 0", 1, 0)
		names, images = validRows(t, s, manifest.Dataset{Path: base + "/data/photos/{2,1}.png"})
		want(t, names, images, "2 1", 2, 1)
	}
}

// TestWebRanges: later blocks are of the version of the first one, and no range passes the end.
func TestWebRanges(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	const line = "https://example.org/0123456789012345678901234567.png?\n"
	list := strings.Repeat(line, 3<<14)
	write(t, folder, "list.txt", []byte(list))
	var mu sync.Mutex
	var etags, ranges []string
	base, allow := webServer(t, folder, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet {
			mu.Lock()
			defer mu.Unlock()
			etags, ranges = append(etags, r.Header.Get("If-Match")), append(ranges, r.Header.Get("Range"))
		}
		return false
	})
	if all, _, err := rows(t, sources(t, allow), manifest.Dataset{Path: base + "/list.txt"}); err != nil || len(all) != 3<<14 {
		t.Fatalf("%d rows, %v", len(all), err)
	}
	if len(ranges) < 3 || etags[0] != "" || slices.Contains(etags[1:], "") {
		t.Errorf("requests with If-Match %q", etags)
	}
	for _, r := range ranges[1:] {
		var from, to int
		if _, err := fmt.Sscanf(r, "bytes=%d-%d", &from, &to); err != nil || to >= len(list) {
			t.Errorf("range %q of %d bytes", r, len(list))
		}
	}
	write(t, folder, "empty.txt", nil)
	if _, _, err := rows(t, sources(t, allow), manifest.Dataset{Path: base + "/empty.txt"}); !errors.Is(err, manifest.ErrEmptyDataset) {
		t.Errorf("empty list: %v", err)
	}
}

// TestWebListIsReplaced: a server that ignores If-Match and sends another version of a list is found out.
func TestWebListIsReplaced(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write(t, folder, "list.txt", []byte(strings.Repeat("https://example.org/0123456789012345678901234567.png?\n", 3<<14)))
	var requests atomic.Int64
	base, allow := webServer(t, folder, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet {
			return false
		}
		r.Header.Del("If-Match")
		n := requests.Add(1)
		file, err := os.Open(filepath.Join(folder, "list.txt"))
		if err != nil {
			t.Error(err)
			return false
		}
		defer file.Close()
		w.Header().Set("ETag", fmt.Sprintf(`"version %d"`, min(n, 2)))
		http.ServeContent(w, r, "", time.Time{}, file)
		return true
	})
	if _, _, err := rows(t, sources(t, allow), manifest.Dataset{Path: base + "/list.txt"}); !errors.Is(err, dataset.ErrChanged) {
		t.Errorf("error %v, want ErrChanged", err)
	}
}

// A remote list is not trusted.
func TestWebListsAreNotTrusted(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	base, allow := webServer(t, folder, nil)
	s := sources(t, allow)
	for line, problem := range map[string]string{
		"/etc/hostname.png":        "names an absolute path",
		"../a.png":                 "names a parent directory",
		"%2e%2e/a.png":             "names a parent directory",
		"x/%2E%2E/%2e%2e/a.png":    "names a parent directory",
		`..\a.png`:                 "contains a backslash",
		"//example.org/a.png":      "names an absolute path",
		"file:///etc/hostname.png": "names a local file",
		"tar+file:///etc/x.tar#offset=0&size=9&name=a.png":                     "names a local file",
		"parquet+file:///etc/x.parquet#row=0&column=image.bytes&name=a.png":    "names a local file",
		"s3://bucket/a.png?endpoint=https://thief.example":                     "remove the query",
		"tar+s3://bucket/a.tar?endpoint=https://thief.example#offset=0&size=9": "remove the query",
		"https://10.1.2.3/a.png":                                               "10.1.2.3 is not a public address",
		"https://[::ffff:10.1.2.3]/a.png":                                      "10.1.2.3 is not a public address",
		"https://169.254.169.254/a.png":                                        "169.254.169.254 is not a public address",
		".":                                                                    "file is missing",
	} {
		write(t, folder, "list.txt", []byte(line+"\n"))
		all, _, err := rows(t, s, manifest.Dataset{Path: base + "/list.txt"})
		if err != nil || len(all) != 1 || all[0].Err == nil || !strings.Contains(all[0].Err.Error(), problem) {
			t.Errorf("%s: error %v, %+v", line, err, all)
		}
	}
}

// The resolved IP address decides whether a connection is allowed.
func TestPrivateNetworksAreRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write(t, folder, "a.png", picture(t, 0))
	base, allow := webServer(t, folder, nil)
	port := base[strings.LastIndex(base, ":"):]
	closed := sources(t, func(c *dataset.Config) { allow(c); c.Networks = nil })
	open := sources(t, allow)
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		_, err := closed.Get(t.Context(), "https://"+host+port+"/a.png")
		if !errors.Is(err, dataset.ErrRefused) || !strings.Contains(err.Error(), "is not a public address") {
			t.Errorf("%s: %v", host, err)
		}
	}
	if _, err := open.Get(t.Context(), base+"/a.png"); err != nil {
		t.Errorf("allowed: %v", err)
	}
	listed := sources(t, func(c *dataset.Config) { allow(c); c.Hosts = []string{"example.org", "*.example.net"} })
	for host, want := range map[string]bool{"127.0.0.1": false, "example.com": false, "a.example.org": false, "example.net": false} {
		_, err := listed.Get(t.Context(), "https://"+host+port+"/a.png")
		if refused := errors.Is(err, dataset.ErrRefused) && strings.Contains(err.Error(), "is not allowed"); refused == want {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write(t, folder, "a.png", picture(t, 0))
	plain := httptest.NewServer(http.FileServer(http.Dir(folder)))
	t.Cleanup(plain.Close)
	var referer atomic.Value
	base, allow := webServer(t, folder, func(w http.ResponseWriter, r *http.Request) bool {
		referer.Store(r.Header.Get("Referer"))
		to := r.URL.Query().Get("to")
		var n int
		if _, err := fmt.Sscanf(r.URL.Path, "/hops/%d", &n); err == nil && n > 0 {
			to = fmt.Sprintf("/hops/%d", n-1)
			if n == 1 {
				to = "/a.png"
			}
		}
		if to == "" {
			return false
		}
		http.Redirect(w, r, to, http.StatusFound)
		return true
	})
	s := sources(t, func(c *dataset.Config) { allow(c); c.AllowHTTP = true; c.CacheBytes = -1 })
	for path, problem := range map[string]string{
		"/hops/5":                       "",
		"/hops/6":                       "more than 5 redirects",
		"/x?to=" + plain.URL + "/a.png": "redirect from https to http",
		"/x?to=https://10.0.0.1/":       "10.0.0.1 is not a public address",
		"/x?to=https://u:p@h.org/":      "contains credentials",
		"/x?to=file:///etc/passwd":      "redirect from https to file",
	} {
		data, err := s.Get(t.Context(), base+path)
		if problem == "" {
			if err != nil || !bytes.Equal(data, picture(t, 0)) || referer.Load() != "" {
				t.Errorf("%s: %v, referer %v", path, err, referer.Load())
			}
			continue
		}
		if !errors.Is(err, dataset.ErrRefused) || !strings.Contains(err.Error(), problem) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Faults of a server, and which of them are retried.
func TestWebAnswers(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	whole := picture(t, 3)
	write(t, folder, "a.png", whole)
	var requests atomic.Int64
	base, allow := webServer(t, folder, func(w http.ResponseWriter, r *http.Request) bool {
		n := requests.Add(1)
		var status int
		switch _, err := fmt.Sscanf(r.URL.Path, "/status/%d", &status); {
		case err == nil:
			w.WriteHeader(status)
		case r.URL.Path == "/once":
			if n == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
			} else {
				w.Write(whole) //nolint:errcheck // the client may have disconnected
			}
		case r.URL.Path == "/broken":
			w.Header().Set("Content-Length", "1000")
			w.Write(whole[:10]) //nolint:errcheck // the client may have disconnected
		case r.URL.Path == "/packed":
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(whole) //nolint:errcheck // the client may have disconnected
		case r.URL.Path == "/large":
			w.Header().Set("Content-Length", "2000000")
			w.Write(make([]byte, 2000000)) //nolint:errcheck // the client may have disconnected
		case r.URL.Path == "/endless":
			for range 100 {
				w.Write(make([]byte, 20000)) //nolint:errcheck // the client may have disconnected
			}
		case r.URL.Path == "/slow":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			return false
		}
		return true
	})
	s := sources(t, func(c *dataset.Config) {
		allow(c)
		c.MaxBytes, c.CacheBytes, c.Timeout = 1<<20, -1, time.Second
	})
	for path, want := range map[string]error{
		"/status/404": dataset.ErrNotFound, "/status/410": dataset.ErrNotFound,
		"/status/401": dataset.ErrDenied, "/status/403": dataset.ErrDenied,
		"/status/500": dataset.ErrUnavailable, "/status/503": dataset.ErrUnavailable, "/status/429": dataset.ErrUnavailable,
		"/status/400": dataset.ErrRefused, "/status/304": dataset.ErrRefused,
		"/broken": dataset.ErrUnavailable, "/packed": dataset.ErrRefused, "/once": nil,
		"/large": dataset.ErrTooLarge, "/endless": dataset.ErrTooLarge, "/slow": dataset.ErrUnavailable,
	} {
		requests.Store(0)
		_, err := s.Get(t.Context(), base+path+"?sig=S1")
		if !errors.Is(err, want) || err != nil && (strings.Contains(err.Error(), "S1") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
		if again := requests.Load() > 1; again != (errors.Is(want, dataset.ErrUnavailable) || path == "/once") {
			t.Errorf("%s: %d requests", path, requests.Load())
		}
	}
	strange := sources(t, func(c *dataset.Config) { allow(c); c.CAFile = "" })
	if _, err := strange.Get(t.Context(), base+"/a.png"); !errors.Is(err, dataset.ErrRefused) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("unknown authority: %v", err)
	}
	u, _ := url.Parse(base)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	gone.Close()
	if _, err := s.Get(t.Context(), strings.Replace(base, u.Host, gone.Addr().String(), 1)+"/a.png"); !errors.Is(err, dataset.ErrUnavailable) {
		t.Errorf("no listener: %v", err)
	}
}

// Files are cached and never stale.
func TestWebCache(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := write(t, folder, "a.png", picture(t, 1))
	var gets atomic.Int64
	base, allow := webServer(t, folder, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet {
			gets.Add(1)
		}
		return false
	})
	s := sources(t, allow)
	for range 3 {
		if data, err := s.Get(t.Context(), base+"/a.png"); err != nil || !bytes.Equal(data, picture(t, 1)) {
			t.Fatal(err)
		}
	}
	if gets.Load() != 1 {
		t.Errorf("%d downloads of one version", gets.Load())
	}
	write(t, folder, "a.png", picture(t, 2))
	later := time.Now().Add(time.Hour)
	must(t, os.Chtimes(path, later, later))
	if data, err := s.Get(t.Context(), base+"/a.png"); err != nil || !bytes.Equal(data, picture(t, 2)) {
		t.Errorf("stale picture, or error %v", err)
	}
}
