package serve_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ddiff/internal/coordinator/serve"
	"ddiff/internal/coordinator/serve/output"
	"ddiff/internal/regular"
	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/result"
	"ddiff/restore/item"
)

// archives is a server over an output with three items, the first of them the worst.
type archives struct {
	t     *testing.T
	store *reporttest.Memory
	items []item.Result
	url   string
}

func newArchives(t *testing.T) *archives {
	t.Helper()
	a := &archives{t: t, store: reporttest.NewMemory()}
	for i, name := range []string{"../a b.png", "b.png", strings.Repeat("c", 300)} {
		r := reporttest.Result(t, "hdr", "ddiff", name, 0, reporttest.Scored(20+float64(i), 18, 0.5, 0.01))
		reporttest.Illustrate(t, a.store, &r, i)
		for file := range r.Artifacts {
			r.Artifacts[file] = regular.SHA256(a.store.Files[item.Key(r.Item.ID, file)])
		}
		data, err := json.Marshal(r)
		reporttest.Must(t, err)
		a.store.Files[item.Key(r.Item.ID, item.FileResult)] = data
		a.items = append(a.items, r)
	}
	backend, err := output.New(t.Context(), []result.Output{{Address: "out/night", Store: a.store}})
	reporttest.Must(t, err)
	s, err := serve.New(serve.Config{Backend: backend, Kind: "output", Secret: "secret", Logger: slog.New(slog.DiscardHandler)})
	reporttest.Must(t, err)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	a.url = server.URL + "/api/v1/campaigns/night/archive"
	return a
}

// sent is an answer with its bytes.
type sent struct {
	status int
	length int64
	tag    string
	data   []byte
}

// get returns an answer, and the error of reading its bytes.
func (a *archives) get(query string, header map[string]string) (sent, error) {
	a.t.Helper()
	return a.getAt(a.url+query, header)
}

func (a *archives) getAt(url string, header map[string]string) (sent, error) {
	a.t.Helper()
	r, err := http.NewRequestWithContext(a.t.Context(), http.MethodGet, url, nil)
	reporttest.Must(a.t, err)
	r.Header.Set("Authorization", "Bearer secret")
	for name, value := range header {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	reporttest.Must(a.t, err)
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	return sent{answer.StatusCode, answer.ContentLength, answer.Header.Get("ETag"), data}, err
}

// TestArchive: the archive of a selection has the files of its items in their order, and resumes at any byte.
func TestArchive(t *testing.T) {
	t.Parallel()
	a := newArchives(t)
	answer, err := a.get("?sort=psnr&limit=2", nil)
	reporttest.Must(t, err)
	whole := answer.data
	if answer.status != http.StatusOK || answer.length != int64(len(whole)) {
		t.Fatalf("%d, %d of %d bytes", answer.status, len(whole), answer.length)
	}
	found := 0
	for files := tar.NewReader(bytes.NewReader(whole)); ; found++ {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		reporttest.Must(t, err)
		data, err := io.ReadAll(files)
		reporttest.Must(t, err)
		folder, name, _ := strings.Cut(h.Name, "/")
		i := int(folder[3] - '1')
		if !bytes.Equal(data, a.store.Files[item.Key(a.items[i].Item.ID, name)]) || !h.ModTime.Equal(a.items[i].Finished) {
			t.Errorf("%s is not the file of item %d", h.Name, i)
		}
		if want := []string{"0001 .._a_b.png hdr ddiff 0", "0002 b.png hdr ddiff 0"}[i]; folder != want {
			t.Errorf("the folder is %q, want %q", folder, want)
		}
	}
	if found != 10 {
		t.Errorf("%d files, want 10", found)
	}
	for _, from := range []int{0, 1, 511, 512, 513, 4096, len(whole) / 2, len(whole) - 1025, len(whole) - 1} {
		part, err := a.get("?sort=psnr&limit=2", map[string]string{"Range": fmt.Sprintf("bytes=%d-", from), "If-Range": answer.tag})
		reporttest.Must(t, err)
		if part.status != http.StatusPartialContent || !bytes.Equal(part.data, whole[from:]) {
			t.Errorf("from %d: %d, %d bytes, want %d", from, part.status, len(part.data), len(whole)-from)
		}
	}
	for name, c := range map[string]struct {
		query  string
		header map[string]string
		status int
	}{
		"another archive than before": {"?sort=psnr&limit=2", map[string]string{"Range": "bytes=9-", "If-Range": `"other"`}, http.StatusOK},
		"a part in the middle":        {"?sort=psnr&limit=2", map[string]string{"Range": "bytes=9-20"}, http.StatusOK},
		"a long name":                 {"?name=ccc", nil, http.StatusOK},
		"behind the end":              {"", map[string]string{"Range": "bytes=999999999-"}, http.StatusRequestedRangeNotSatisfiable},
		"no item":                     {"?task=denoise", nil, http.StatusNotFound},
		"a wrong query":               {"?limit=0", nil, http.StatusUnprocessableEntity},
	} {
		if answer, err := a.get(c.query, c.header); err != nil || answer.status != c.status {
			t.Errorf("%s: %d, %v; want %d", name, answer.status, err, c.status)
		}
	}
}

// TestAttackSlowArchives: a client that takes its archives slowly does not keep others from theirs, nor from answers that need memory.
func TestAttackSlowArchives(t *testing.T) {
	t.Parallel()
	a := newArchives(t)
	restored := item.Key(a.items[0].Item.ID, item.FileRestored)
	large := make([]byte, 12<<20) // more than sockets hold, and eight are less than the share of a token
	a.store.Files[restored] = large
	a.items[0].Artifacts[item.FileRestored] = regular.SHA256(large)
	data, err := json.Marshal(a.items[0])
	reporttest.Must(t, err)
	a.store.Files[item.Key(a.items[0].Item.ID, item.FileResult)] = data
	open := func(from string) int {
		dial := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		client := &http.Client{Transport: &http.Transport{DialContext: dial.DialContext, DisableKeepAlives: true}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.url+"?sort=psnr&limit=1", nil)
		reporttest.Must(t, err)
		r.Header.Set("Authorization", "Bearer secret")
		answer, err := client.Do(r)
		reporttest.Must(t, err)
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer.StatusCode
	}
	for from, want := range map[string]int{"127.0.0.2": 4, "127.0.0.3": 4} {
		sent := 0
		for range 6 {
			if open(from) == http.StatusOK {
				sent++
			}
		}
		if sent != want {
			t.Errorf("%d archives are sent to %s at once, want %d", sent, from, want)
		}
	}
	if status := open("127.0.0.4"); status != http.StatusServiceUnavailable {
		t.Errorf("a ninth archive of one token: %d", status)
	}
	answer, err := a.getAt(strings.Replace(a.url, "/archive", "/items/"+a.items[0].Item.ID+"/files/"+item.FileRestored, 1), nil)
	if err != nil || answer.status != http.StatusOK || len(answer.data) != len(large) {
		t.Errorf("a file beside slow archives: %d, %d bytes, %v", answer.status, len(answer.data), err)
	}
}

// TestArchiveOfDamage: a file that does not match its digest breaks the archive; no client takes the part for the whole.
func TestArchiveOfDamage(t *testing.T) {
	t.Parallel()
	a := newArchives(t)
	a.store.Files[item.Key(a.items[1].Item.ID, item.FileRestored)][100]++
	if _, err := a.get("?sort=psnr", nil); err == nil {
		t.Error("an archive with a damaged file ended as a whole one")
	}
	if _, err := a.get("?sort=psnr&limit=1", nil); err != nil {
		t.Errorf("an archive without the damaged file: %v", err)
	}
}
