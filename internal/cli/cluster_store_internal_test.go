package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/internal/dataset"
	"ddiff/storage"
)

// TestLimitOfModels: the store of a cluster and the sources of priors refuse files above 2 GiB only, by their size.
func TestLimitOfModels(t *testing.T) {
	t.Parallel()
	const ldmVQ = 329_378_945 * 4 // bytes of the published latent prior of FFHQ with its first stage, in float32
	if modelBytes < ldmVQ {
		t.Errorf("the limit is %d bytes", modelBytes)
	}
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "large"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Truncate(modelBytes+1), file.Close()); err != nil { // takes no space
		t.Fatal(err)
	}
	store, err := OpenClusterStore(t.Context(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // a directory without a lock
	want := fmt.Sprintf("%d", modelBytes)
	if _, err := store.Store.Get(t.Context(), "large"); !errors.Is(err, storage.ErrTooLarge) || !strings.Contains(err.Error(), want) {
		t.Errorf("store: error %v, want %s in it", err, want)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(modelBytes+1))
	}))
	defer server.Close()
	sources := SourceFlags{allowHTTP: true, networks: []string{"127.0.0.0/8"}}
	models, err := sources.OpenModels("", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer models.Close()
	if _, err := models.Get(t.Context(), server.URL+"/prior.onnx"); !errors.Is(err, dataset.ErrTooLarge) || !strings.Contains(err.Error(), want) {
		t.Errorf("sources: error %v, want %s in it", err, want)
	}
}
