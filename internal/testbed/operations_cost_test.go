package testbed

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// s3Counter is a proxy that counts the requests to an S3 server, by role and method.
type s3Counter struct {
	keys map[string]Role // by access key

	mu       sync.Mutex
	requests map[string]int
	in, out  int64 // bytes of bodies to and from the server
}

// countS3 starts a proxy in front of the S3 server of a cluster. Programs that start afterwards use it.
func countS3(t *testing.T, c *Cluster) *s3Counter {
	t.Helper()
	n := &s3Counter{keys: map[string]Role{}, requests: map[string]int{}}
	for role, k := range c.keys {
		n.keys[k.Access] = role
	}
	to := &url.URL{Scheme: "http", Host: c.S3.Address}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host // it is signed
			_, credential, _ := strings.Cut(r.In.Header.Get("Authorization"), "Credential=")
			key, _, _ := strings.Cut(credential, "/")
			method := r.In.Method
			if method == http.MethodGet && strings.Contains(r.In.URL.RawQuery, "list-type") {
				method = "LIST"
			}
			n.mu.Lock()
			n.requests[fmt.Sprintf("%s %s", n.keys[key], method)]++
			n.in += max(r.In.ContentLength, 0)
			n.mu.Unlock()
		},
		ModifyResponse: func(r *http.Response) error {
			if r.Request.Method != http.MethodHead {
				r.Body = &countedBody{r.Body, n}
			}
			return nil
		},
	})
	t.Cleanup(server.Close)
	c.Through(strings.TrimPrefix(server.URL, "http://"))
	return n
}

// countedBody counts the bytes that are read.
type countedBody struct {
	io.ReadCloser
	n *s3Counter
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.mu.Lock()
	b.n.out += int64(n)
	b.n.mu.Unlock()
	return n, err
}

// take returns the counts since the last call.
func (n *s3Counter) take() (requests map[string]int, in, out int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	requests, in, out = n.requests, n.in, n.out
	n.requests, n.in, n.out = map[string]int{}, 0, 0
	return requests, in, out
}

// TestStoreRequests counts the requests of two campaigns, of 3 and of 15 items, and checks the costs of an item in
// docs/cluster.md.
func TestStoreRequests(t *testing.T) {
	t.Parallel()
	c := startCluster(t, Options{})
	n := countS3(t, c)
	coordinator(t, c)
	worker(t, c, "--batch", "1")
	const few, many = 3, 15
	var requests [2]map[string]int
	var in, out [2]int64
	for i, names := range [][]string{{"chelsea"}, {"astronaut", "coffee", "rocket", "chelsea", "retina"}} {
		file := filepath.Join(t.TempDir(), fmt.Sprintf("cost-%d.yaml", i))
		write(t, file, fmt.Appendf(nil, "name: cost-%d\ndataset: {path: %q, size: 64}\ntasks: [super_resolution, hdr, gaussian_deblur]\nsteps: 20\nseed: %d\n",
			i, photographs(t, names...), i))
		id := submit(t, c, file, "--canary", "0")
		wantFinished(t, c, id, []int{few, many}[i])
		requests[i], in[i], out[i] = n.take()
		t.Logf("%d bytes per item in the store", bytesBelow(t, filepath.Join(c.Results(id), "items"))/int64([]int{few, many}[i]))
	}
	perItem := map[string]float64{}
	for _, name := range slices.Sorted(maps.Keys(requests[1])) {
		perItem[name] = float64(requests[1][name]-requests[0][name]) / (many - few)
		t.Logf("%-20s %4d for %d items, %4d for %d items: %.2f per item", name, requests[0][name], few, requests[1][name], many, perItem[name])
	}
	// Of a worker: result twice and checkpoint, each not there yet; truth, measurement as array and picture, trace, restored
	// image, result. A campaign adds its preflight and probes, and the report reads each result once and some pictures.
	for name, want := range map[string]float64{"worker-1 GET": 3, "worker-1 PUT": 6, "worker-1 HEAD": 0, "worker-1 LIST": 0, "coordinator-1 LIST": 0, "coordinator-1 PUT": 0} {
		if got := perItem[name]; got < want-0.4 || got > want+0.4 {
			t.Errorf("%s: %.2f requests per item, docs/cluster.md has %.0f", name, got, want)
		}
	}
	t.Logf("bytes to the store %.0f, from the store %.0f per item", float64(in[1]-in[0])/(many-few), float64(out[1]-out[0])/(many-few))
}

// bytesBelow returns the size of all files below a directory.
func bytesBelow(t *testing.T, dir string) (total int64) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	}))
	return total
}
