package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ddiff/api"
	"ddiff/internal/cli"
	"ddiff/internal/cli/server"
	"ddiff/internal/coordinator/serve"
	finished "ddiff/internal/coordinator/serve/output"
	"ddiff/internal/regular"
	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/result"
	"ddiff/restore/item"
)

// TestPullFromServer: a token alone is enough to copy the items of a campaign; they are checked, and a second call copies the rest.
func TestPullFromServer(t *testing.T) {
	store := reporttest.NewMemory()
	var last item.Result
	for i, name := range []string{"a.png", "b.png", "c.png"} {
		r := reporttest.Result(t, "hdr", "ddiff", name, 0, reporttest.Scored(20+float64(i), 18, 0.5, 0.01))
		reporttest.Illustrate(t, store, &r, i)
		for file := range r.Artifacts {
			r.Artifacts[file] = regular.SHA256(store.Files[item.Key(r.Item.ID, file)])
		}
		data, err := json.Marshal(r)
		reporttest.Must(t, err)
		store.Files[item.Key(r.Item.ID, item.FileResult)] = data
		last = r
	}
	backend, err := finished.New(t.Context(), []result.Output{{Address: "out/night", Store: store}})
	reporttest.Must(t, err)
	s, err := serve.New(serve.Config{Backend: backend, Kind: "output", Secret: "secret", Logger: slog.New(slog.DiscardHandler)})
	reporttest.Must(t, err)
	web := httptest.NewServer(s)
	defer web.Close()
	t.Setenv("DDIFF_TOKEN", "secret")

	dir := filepath.Join(t.TempDir(), "night")
	pull := func(campaign, want string, code error, o pullOptions) {
		t.Helper()
		o.api = server.Flags{Address: web.URL}
		var out bytes.Buffer
		if err := o.pull(t.Context(), campaign, dir, &out, io.Discard); !errors.Is(err, code) || !strings.HasPrefix(out.String(), want) {
			t.Errorf("%s and %v, want %s and %v", out.String(), err, want, code)
		}
	}
	damaged := item.Key(last.Item.ID, item.FileRestored)
	sound := store.Files[damaged]
	store.Files[damaged] = append([]byte{0}, sound...)
	pull("night", "items=3 copied=2 present=0 unfinished=0 wrong=1", cli.ErrMismatch, pullOptions{})
	store.Files[damaged] = sound
	pull("night", "items=3 copied=1 present=2 unfinished=0 wrong=0", nil, pullOptions{})
	pull("night", "items=1 copied=0 present=1", nil, pullOptions{items: []string{last.Item.ID[:12]}})
	for key, want := range store.Files {
		if got, err := os.ReadFile(filepath.Join(dir, key)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, or it differs", key, err)
		}
	}
	if err := (pullOptions{api: server.Flags{Address: web.URL}}).pull(t.Context(), "nobody", dir, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("an unknown campaign: %v", err)
	}
}

// TestRemoteRepeatedRows: an item that several rows of the dataset have is one item, as in the store.
func TestRemoteRepeatedRows(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := api.Items{Items: []api.Item{{ID: "a"}, {ID: "b"}, {ID: "a"}}, Next: "more"}
		if r.URL.Query().Get("cursor") != "" {
			page = api.Items{Items: []api.Item{{ID: "b"}, {ID: "c"}}}
		}
		w.Header().Set("Content-Type", "application/json")
		reporttest.Must(t, json.NewEncoder(w).Encode(page))
	}))
	defer web.Close()
	client, err := api.NewClient(api.ClientConfig{URL: web.URL, Token: "secret"})
	reporttest.Must(t, err)
	var ids []string
	for id, err := range itemIDs(t.Context(), remote{client, "night"}) {
		reporttest.Must(t, err)
		ids = append(ids, id)
	}
	if want := []string{"a", "b", "c"}; !slices.Equal(ids, want) {
		t.Errorf("%v, want %v", ids, want)
	}
}
