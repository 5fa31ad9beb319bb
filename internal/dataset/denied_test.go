package dataset_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"ddiff/internal/dataset"
	"ddiff/manifest"
	"ddiff/storage"
)

// answer is the error answer of a bucket to the requests for some keys.
type answer struct {
	mu     sync.Mutex
	status int
	code   string
	part   string // of the paths of the requests; empty: of none
	begin  int    // the number of matching requests that are answered as usual before
}

func (a *answer) set(status int, code, part string, begin int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status, a.code, a.part, a.begin = status, code, part, begin
}

// hits reports whether the request gets the error answer.
func (a *answer) hits(r *http.Request) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.part == "" || !strings.Contains(r.URL.Path, a.part) {
		return false
	}
	a.begin--
	return a.begin < 0
}

// TestBucketOfSeveralPathsFails reads lists and shards of a bucket while one of them, or from one of them on all, cannot be
// read. A missing one is a failed row; keys that lack access and an outage end the dataset.
func TestBucketOfSeveralPathsFails(t *testing.T) {
	t.Parallel()
	objects := map[string][]byte{}
	var long strings.Builder // of several blocks
	for range 3 << 20 / 64 {
		fmt.Fprintf(&long, "img/%060d\n", 0)
	}
	for i := range 4 {
		objects[fmt.Sprintf("list%d.txt", i)] = []byte(fmt.Sprintf("img/%d.png\n", i))
		objects[fmt.Sprintf("shard%d.tar", i)] = tarFile(t, memberFile{fmt.Sprintf("%d.png", i), picture(t, i)})
	}
	objects["long.txt"] = []byte(strings.ReplaceAll(long.String(), "0\n", ".png\n"))
	name, server, allow := bucket(t, objects)
	direct, err := url.Parse(server.Endpoint)
	must(t, err)
	var fault answer
	forward := httputil.NewSingleHostReverseProxy(direct)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !fault.hits(r) {
			forward.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(fault.status)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>no</Message></Error>", fault.code)
	}))
	defer proxy.Close()

	for _, c := range []struct {
		name         string
		path         string
		status       int
		code, part   string
		begin        int
		rows, failed int
		err          error
	}{
		{"one list refused", "list{0..3}.txt", 403, "AccessDenied", "list2", 0, 2, 0, storage.ErrAccess},
		{"one shard refused", "shard{0..3}.tar", 403, "AccessDenied", "shard2", 0, 2, 0, storage.ErrAccess},
		{"one list missing", "list{0..4}.txt", 403, "", "", 0, 5, 1, nil},
		{"keys expire", "list{0..3}.txt", 403, "ExpiredToken", "/", 3, 3, 0, storage.ErrAccess},
		{"one list unavailable", "list{0..3}.txt", 503, "SlowDown", "list2", 0, 2, 0, storage.ErrUnavailable},
		{"one shard unavailable", "shard{0..3}.tar", 503, "SlowDown", "shard2", 0, 2, 0, storage.ErrUnavailable},
		{"a list is interrupted", "long.txt", 503, "SlowDown", "long", 2, -1, 0, storage.ErrUnavailable},
		{"keys expire within a list", "long.txt", 403, "ExpiredToken", "long", 2, -1, 0, storage.ErrAccess},
		{"one of two lists is interrupted", "{list0,long}.txt", 503, "SlowDown", "long", 2, -1, 0, storage.ErrUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			fault.set(0, "", "", 0)
			s := sources(t, func(config *dataset.Config) {
				allow(config)
				config.S3.Endpoint, config.CacheBytes = proxy.URL, -1
			})
			if _, err := s.Get(t.Context(), "s3://"+name+"/list0.txt"); err != nil { // the bucket is open
				t.Fatal(err)
			}
			fault.set(c.status, c.code, c.part, c.begin)
			all, _, err := rows(t, s, manifest.Dataset{Path: "s3://" + name + "/" + c.path})
			if !errors.Is(err, c.err) || c.err == nil && err != nil {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			failed := 0
			for _, row := range all {
				if row.Err != nil {
					failed++
				}
			}
			if c.rows >= 0 && (len(all) > c.rows || c.err == nil && len(all) != c.rows) || failed != c.failed {
				t.Errorf("%d rows, %d failed, want %d and %d", len(all), failed, c.rows, c.failed)
			}
		})
	}
}
