package testbed

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ddiff/api"
	"ddiff/internal/record"
)

// TestAPIOverS3 uses the HTTP API of a coordinator process over a real S3 server: a campaign of a submitter, its items, files and thumbnails, its
// report, and the verbs with --server. At the end an open event stream does not delay the process.
func TestAPIOverS3(t *testing.T) {
	skipLong(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	c, err := Start(ctx, Options{Dir: dir, Program: program})
	t.Cleanup(c.Stop)
	must(t, err)
	_, err = prepare(ctx, c, dir)
	must(t, err)
	address, err := FreeAddress(ctx)
	must(t, err)
	coordinator, err := c.AddCoordinator(ctx, "--listen", address, "--require-tokens")
	must(t, err)
	_, err = c.AddWorker(ctx)
	must(t, err)
	secret := c.token(ctx, t, "submitter")
	client, err := api.NewClient(api.ClientConfig{URL: "http://" + address, Token: secret})
	must(t, err)
	made, err := client.Submit(ctx, fmt.Appendf(nil, "name: over-s3\ndataset: {path: %q, size: 64, fit: resize}\ntasks: [denoise]\nsteps: 8\n", c.Images()), api.Order{})
	must(t, err)
	for {
		s, err := client.Campaign(ctx, made.ID)
		must(t, err)
		if s.Campaign.Phase.Ended() {
			if s.Campaign.Phase != record.PhaseFinished || s.Status.Counts.Done != 6 || s.Campaign.Owner != "vera" {
				t.Fatalf("the campaign ended as %+v of %s with %+v", s.Campaign.Phase, s.Campaign.Owner, s.Status.Counts)
			}
			break
		}
		sleep(ctx, 200*time.Millisecond)
	}
	items, err := client.Items(ctx, made.ID, api.ItemQuery{Sort: "-psnr", Limit: 10})
	if err != nil || items.Total != 6 || items.Items[0].Metrics["psnr"] < items.Items[5].Metrics["psnr"] || items.Items[5].Metrics["psnr"] == 0 {
		t.Fatalf("%+v, %v", items, err)
	}
	item := items.Items[0].ID
	stored, err := os.ReadFile(filepath.Join(c.Results(made.Output), "items", item, "restored.png"))
	must(t, err)
	served, err := client.File(ctx, made.ID, item, "restored.png")
	if err != nil || !bytes.Equal(served, stored) {
		t.Errorf("the picture has %d bytes, and %d in the store, %v", len(served), len(stored), err)
	}
	get := func(path, token string) (int, []byte) {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/api/v1/campaigns/"+made.ID+"/"+path, nil)
		must(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		a, err := http.DefaultClient.Do(r)
		must(t, err)
		defer a.Body.Close()
		data, err := io.ReadAll(a.Body)
		must(t, err)
		return a.StatusCode, data
	}
	status, data := get("items/"+item+"/files/restored.png?width=16", secret)
	if small, err := png.Decode(bytes.NewReader(data)); status != http.StatusOK || err != nil || small.Bounds().Dx() != 16 {
		t.Errorf("a thumbnail: %d %v", status, err)
	}
	for path, want := range map[string]int{
		"items/" + item + "/trace": 200, "items/" + item + "/files/absent.png": 404, "report/index.html": 200, "report/results.csv": 200, "report/absent.csv": 404,
	} {
		if status, data := get(path, secret); status != want {
			t.Errorf("%s: %d %.200s, want %d", path, status, data, want)
		}
	}
	if status, data := get("items/"+item+"/files/restored.png", "ddiff_false"); status != http.StatusUnauthorized {
		t.Errorf("a picture without a token: %d, %d bytes", status, len(data))
	}
	verb := c.Command(ctx, "list", "--server", "http://"+address)
	verb.Env = append(verb.Env, "DDIFF_TOKEN="+secret)
	if out, err := verb.CombinedOutput(); err != nil || !strings.Contains(string(out), made.ID) {
		t.Errorf("list with a server: %v %s", err, out)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/api/v1/events", nil)
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+secret)
	stream, err := http.DefaultClient.Do(r)
	must(t, err)
	defer stream.Body.Close()
	if code, err := coordinator.Stop(10 * time.Second); err != nil || code != 0 {
		t.Errorf("with an open stream the coordinator ended with code %d, %v", code, err)
	}
}

// token returns the secret of a new token of vera.
func (c *Cluster) token(ctx context.Context, t *testing.T, role string) string {
	t.Helper()
	out, err := c.Command(ctx, "token", "create", "--owner", "vera", "--role", role).CombinedOutput()
	if err != nil {
		t.Fatalf("create a token: %v %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestListenFlags: what cannot be served ends the coordinator with one line and the exit code of a wrong flag; another address than that of this
// machine requires tokens without being told.
func TestListenFlags(t *testing.T) {
	skipLong(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c, err := Start(ctx, Options{Dir: t.TempDir(), Program: program, Directory: true})
	t.Cleanup(c.Stop)
	must(t, err)
	taken, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	for wrong, flags := range map[string][]string{
		"--listen":                        {"--listen", taken.Addr().String()},
		"--tls-cert and --tls-key belong": {"--listen", ":0", "--tls-cert", "cert.pem"},
		"are for --listen":                {"--listen", "off", "--require-tokens"},
	} {
		p := c.NewCoordinator(flags...)
		must(t, p.Start())
		select {
		case <-p.Exited():
		case <-ctx.Done():
			t.Fatalf("%q: the coordinator goes on", flags)
		}
		if log := p.Log(); p.Code() != 2 || !strings.Contains(log, wrong) {
			t.Errorf("%q: code %d, %s", flags, p.Code(), tail(log))
		}
	}
	address, err := FreeAddress(ctx)
	must(t, err)
	_, port, _ := strings.Cut(address, ":")
	_, err = c.AddCoordinator(ctx, "--listen", "0.0.0.0:"+port)
	must(t, err)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+port+"/api/v1/me", nil)
	must(t, err)
	a, err := http.DefaultClient.Do(r)
	must(t, err)
	defer a.Body.Close()
	if a.StatusCode != http.StatusUnauthorized {
		t.Errorf("all addresses without a token: %s", a.Status)
	}
}
