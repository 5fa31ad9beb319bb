package machine

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ddiff/api"
)

// A bundle has none of the secrets of all environment variables, of a campaign's record and of an error, and says what it could not read.
func TestBundleWithoutSecrets(t *testing.T) {
	const secret = "hunter2hunter2"
	for _, name := range []string{"DDIFF_TOKEN", "DDIFF_NATS_URL", "DDIFF_SERVER", "DDIFF_NATS_CREDS", "DDIFF_NATS_NKEY", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "OTEL_EXPORTER_OTLP_HEADERS", "ANY_OTHER"} {
		t.Setenv(name, secret)
	}
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/campaigns") {
			http.Error(w, "no", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, `{"campaigns": [{"campaign": {"id": "night-5f0c11d2", "spec": {"notify": "https://hooks.example.org/`+secret+`",
			"dataset": {"path": "https://ann:`+secret+`@host/a.csv?sig=`+secret+`"}}}, "status": {"problem": "read https://host/a?token=`+secret+` failed",
			"warning": "Get \"https://host/b?token=`+secret+`\": EOF"}}]}`)
	}))
	defer cluster.Close()
	client, err := api.NewClient(api.ClientConfig{URL: cluster.URL, Token: secret})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bundle.tar.gz")
	if err := collect(t.Context(), []finding{missing("onnxruntime", "not found", "make runtime")}, client, answerLimit).write(path); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all, names := "", []string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all, names = all+string(data), append(names, h.Name)
	}
	for _, want := range []string{"DDIFF_TOKEN", "night-5f0c11d2", "https://host/a.csv", "(removed)", "make runtime", `"error"`} {
		if !strings.Contains(all, want) {
			t.Errorf("%v lack %q:\n%s", names, want, all)
		}
	}
	if strings.Contains(all, secret) {
		t.Errorf("a secret is in the bundle:\n%s", all)
	}
	if err := collect(t.Context(), nil, nil, answerLimit).write(path); err == nil || !strings.Contains(err.Error(), "exists; give another name") {
		t.Errorf("another bundle of that name: %v", err)
	}
}

// A coordinator that hangs does not prevent a bundle, whose name may not be that of a link.
func TestBundleOfHungServer(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	hung := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	defer hung.Close()
	defer close(end)
	client, err := api.NewClient(api.ClientConfig{URL: hung.URL})
	if err != nil {
		t.Fatal(err)
	}
	b := collect(t.Context(), nil, client, time.Millisecond)
	for _, name := range []string{"campaigns.json", "workers.json"} {
		if !strings.Contains(string(b.files[name]), `"error"`) {
			t.Errorf("%s: %s", name, b.files[name])
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Join(t.TempDir(), "elsewhere"), link); err != nil {
		t.Fatal(err)
	}
	if err := b.write(link); err == nil || !strings.Contains(err.Error(), "exists; give another name") {
		t.Errorf("a link: %v", err)
	}
}
