package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/coordinator/report/reporttest"
	"ddiff/coordinator/report/result"
	"ddiff/coordinator/serve"
	finished "ddiff/coordinator/serve/output"
	"ddiff/internal/cli"
	"ddiff/internal/cli/server"
	"ddiff/internal/regular"
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
