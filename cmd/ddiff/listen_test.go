package main_test

import (
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ddiff/telemetry"
)

// ask sends a request to a process, and returns the code and the text of the answer, or 0 without one.
func ask(t *testing.T, address, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	must(t, err)
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	return answer.StatusCode, string(text)
}

// awaitAnswer asks until the answer has a code.
func awaitAnswer(t *testing.T, address, path string, code int) string {
	t.Helper()
	limit := time.Now().Add(time.Minute)
	for {
		got, text := ask(t, address, path)
		if got == code {
			return text
		}
		if time.Now().After(limit) {
			t.Fatalf("%s answers %d: %s", path, got, text)
		}
		time.Sleep(20 * time.Millisecond) // another process
	}
}

// checkMetrics checks that an endpoint for Prometheus has listed metrics only, beside those of the runtime and the process, and returns
// its text.
func checkMetrics(t *testing.T, address string) string {
	t.Helper()
	code, text := ask(t, address, "/metrics")
	if code != http.StatusOK {
		t.Fatalf("/metrics answers %d", code)
	}
	var names []string
	for _, m := range telemetry.Metrics() {
		name, err := m.PrometheusName()
		must(t, err)
		names = append(names, name)
	}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 3 || words[1] != "TYPE" || words[2] == "target_info" || strings.HasPrefix(words[2], "go_") || strings.HasPrefix(words[2], "process_") {
			continue
		}
		if !slices.Contains(names, words[2]) {
			t.Errorf("%s is not in the list of metrics", words[2])
		}
	}
	return text
}

// TestListen: coordinator and worker answer a supervisor and Prometheus at one address, from their start to their end. A worker
// without a coordinator is started and not ready.
func TestListen(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	n := startNATS(t, "")
	of := freeAddress(t)
	w := beginWorker(t, "--nats", n.url, "--name", "w", "--simulate", "10ms", "--health-listen", of, "--metrics-listen", of)
	awaitAnswer(t, of, "/startupz", http.StatusOK)
	if code, text := ask(t, of, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "coordinator") {
		t.Errorf("/readyz of a worker without a coordinator answers %d: %s", code, text)
	}
	leader := freeAddress(t)
	c := startProcess(t, nil, "coordinator", "--nats", n.url, "--store", store, "--health-listen", leader, "--metrics-listen", leader)
	for _, address := range []string{of, leader} {
		for _, path := range []string{"/startupz", "/readyz", "/livez"} {
			awaitAnswer(t, address, path, http.StatusOK)
		}
	}
	for !strings.Contains(checkMetrics(t, leader), "ddiff_queue_lag{pool=\"default\"} 0\n") {
		time.Sleep(20 * time.Millisecond) // until it leads
	}
	if text := checkMetrics(t, leader); !strings.Contains(text, "ddiff_leader 1\n") || !strings.Contains(text, "ddiff_store_available 1\n") {
		t.Errorf("metrics of the leader: %s", text)
	}
	if text := checkMetrics(t, of); !strings.Contains(text, "ddiff_leases 0\n") {
		t.Errorf("metrics of the worker: %s", text)
	}
	n.stop()
	for _, address := range []string{of, leader} {
		awaitAnswer(t, address, "/readyz", http.StatusServiceUnavailable)
		if code, text := ask(t, address, "/livez"); code != http.StatusOK {
			t.Errorf("/livez without NATS answers %d: %s", code, text)
		}
	}
	w.signal(t, syscall.SIGTERM)
	wantCode(t, w.end(), 0)
	c.signal(t, syscall.SIGTERM)
	c.end()
}

// TestListenRefuses: an address that is invalid or in use, also by the other flag, is one line.
func TestListenRefuses(t *testing.T) {
	t.Parallel()
	n := startNATS(t, t.TempDir())
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	must(t, err)
	for address, flag := range map[string]string{
		"127.0.0.1:nonsense": "--health-listen", taken.Addr().String(): "--metrics-listen", "localhost:" + port: "--health-listen",
	} {
		e := beginWorker(t, "--nats", n.url, "--simulate", "10ms", flag, address).end()
		wantCode(t, e, 2)
		wantMessage(t, e, flag+": ")
	}
	e := startProcess(t, nil, "coordinator", "--nats", n.url, "--store", t.TempDir(), "--metrics-listen", taken.Addr().String()).end()
	wantCode(t, e, 2)
	wantMessage(t, e, "--metrics-listen: ")
	free := freeAddress(t)
	_, port, err = net.SplitHostPort(free)
	must(t, err)
	e = beginWorker(t, "--nats", n.url, "--simulate", "10ms", "--health-listen", free, "--metrics-listen", "0.0.0.0:"+port).end()
	wantCode(t, e, 2)
	wantMessage(t, e, "-listen: ", "address already in use")
}
