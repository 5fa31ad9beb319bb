package testbed

import (
	"io"
	"net/http"
	"os"
	"testing"
	"time"
)

// step is one thing that an operator does or meets, on a running cluster.
type step struct {
	name string
	run  func(t *testing.T)
}

// onlyBy skips a test that takes minutes unless a make target, which sets the variable, runs it. .ci/may-skip names each such test.
func onlyBy(t *testing.T, target, variable string) {
	t.Helper()
	if os.Getenv(variable) == "" {
		t.Skip("takes minutes: run " + target)
	}
}

// takeSteps takes steps in their order. The last line of `make operate-test` counts them.
func takeSteps(t *testing.T, steps []step) {
	t.Helper()
	for _, s := range steps {
		t.Run(s.name, s.run)
	}
}

// probe asks a path of --health-listen for at most ten seconds, and returns the status, 0 without an answer, and the text.
func probe(t *testing.T, address, path string) (status int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	must(t, err)
	res, err := (&http.Client{Timeout: 10 * time.Second}).Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close() // it was read
	body, err := io.ReadAll(res.Body)
	must(t, err)
	return res.StatusCode, string(body)
}

// wantReady waits until /readyz answers with a status.
func wantReady(t *testing.T, address string, status int) {
	t.Helper()
	var got int
	var text string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); sleep(t.Context(), 200*time.Millisecond) {
		if got, text = probe(t, address, "/readyz"); got == status {
			return
		}
	}
	t.Errorf("%s/readyz answers %d after 30 s, want %d: %s", address, got, status, text)
}

// listening returns an address for --health-listen.
func listening(t *testing.T) string {
	t.Helper()
	address, err := FreeAddress(t.Context())
	must(t, err)
	return address
}

// begin starts a process with more variables and waits until it is ready.
func begin(t *testing.T, p *Process, ready string, env ...string) {
	t.Helper()
	p.env = append(p.env, env...)
	must(t, p.Start())
	must(t, p.WaitLog(t.Context(), ready))
}
