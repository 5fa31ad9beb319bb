package main_test

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ddiff/internal/record"
	"ddiff/internal/regular"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/item"
	"ddiff/restore/onnx"
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
	leader, served := freeAddress(t), freeAddress(t)
	c := startProcess(t, nil, "coordinator", "--nats", n.url, "--store", store, "--metrics-listen", leader, "--listen", served)
	for _, address := range []string{of, leader, served} {
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
	for _, address := range []string{of, leader, served} {
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

// endlessPrior returns the bytes of a score model that loops without end at times below one, for images larger than those of 32×32 pixels on
// which a new prior is verified, within 20 s.
func endlessPrior(t *testing.T, below int) []byte {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, -1, 3, -1, -1)
	larger := g.Add(g.Reshape(g.Apply("Size", onnx.Int64, nil, nil, x), 1), g.Ints(-3*32*32))
	time := g.Apply("ReduceMin", onnx.Int64, []int{1}, nil, g.Input("t", onnx.Int64, -1))
	late := g.Max(g.Add(g.Ints(below), g.Mul(time, g.Ints(-1))), g.Ints(0))
	final, _ := g.Loop(g.Mul(larger, g.Mul(late, g.Ints(1<<30))), []onnx.Value{x}, func(b *onnx.Graph, _ onnx.Value, s []onnx.Value) (next, collect []onnx.Value) {
		return []onnx.Value{b.Mul(s[0], b.Scalar(0.5))}, nil
	})
	g.Output("eps", final[0])
	data, err := g.Marshal("endless")
	must(t, err)
	return onnxtest.WithMetadata(t, data, card(3))
}

// measured identifies the span that ends before the solver starts.
const measured = `"Name":"measure"`

// A run with a prior that loops without end closes its output and ends with the exit code of a hang.
func TestRunEndsAfterHang(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, out := filepath.Join(dir, "endless.onnx"), filepath.Join(dir, "out")
	write(t, file, endlessPrior(t, 1000))
	args := []string{"--images", photograph("coffee"), "--task", "hdr", "--prior", file, "--out", out, "--stage-timeout", "solve=300ms"}
	e := restore(t, args...)
	wantCode(t, e, 10)
	wantMessage(t, e, "ddiff: the worker hung: stage solve took", "its limit is 300ms", "raise --stage-timeout")
	if !strings.Contains(e.stdout, "done=0 failed=0 dead=0 pending=1 out="+out) {
		t.Errorf("the counts are missing\n%v", e)
	}
	wantCode(t, restore(t, args...), 10) // nothing is locked or damaged
}

// The first SIGINT ends a run whose prior loops without end, long before the limit of the process.
func TestInterruptEndsHang(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "endless.onnx")
	write(t, file, endlessPrior(t, 100))
	p := begin(t, "--images", photograph("coffee"), "--task", "hdr", "--steps", "2", "--prior", file, "--out", filepath.Join(dir, "out"))
	p.wait(t, &p.stdout, steps, 1) // the second step has no end
	p.signal(t, syscall.SIGINT)
	e := p.end()
	wantCode(t, e, 130)
	wantMessage(t, e, "interrupted a stage", "stage=solve")
}

// endlessCampaign submits a campaign of one item whose prior loops without end. It returns the campaign's record.
func (n *natsServer) endlessCampaign(t *testing.T, store string) record.Campaign {
	t.Helper()
	data, item := endlessPrior(t, 1000), longItem(t)
	file := record.PriorFile{SHA256: regular.SHA256(data), Key: "priors/endless.onnx"}
	must(t, os.Mkdir(filepath.Join(store, "priors"), 0o755))
	write(t, filepath.Join(store, file.Key), data)
	item.Prior = file.SHA256
	must(t, item.Identify())
	n.campaign(t, "endless", item)
	c := record.Campaign{
		Schema: record.Schema, ID: "endless", Output: "endless", Priority: record.PriorityNormal, Weight: 1,
		Wanted: record.WantRun, Phase: record.PhaseRunning, Prior: file,
	}
	n.put(t, record.KeyCampaignPrefix+c.ID, c)
	return c
}

// freeAddress returns an address of this machine that was free a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}

// An immediate cancellation frees a worker whose prior loops without end; the worker continues, and is healthy.
func TestCancelFreesHungWorker(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	n := startNATS(t, store)
	c := n.endlessCampaign(t, store)
	address := freeAddress(t)
	w := beginWorker(t, "--nats", n.url, "--name", "first", "--health-listen", address)
	w.wait(t, &w.stdout, measured, 1)
	c.Wanted = record.WantCancelNow
	n.put(t, record.KeyCampaignPrefix+c.ID, c)
	w.wait(t, &w.stderr, "dropped item of a cancelled campaign", 1)
	if code, text := ask(t, address, "/livez"); code != http.StatusOK {
		t.Errorf("/livez answers %d: %s", code, text)
	}
	w.signal(t, syscall.SIGTERM)
	wantCode(t, w.end(), 0)
}

// A worker whose stage exceeds its limit ends with the exit code of a hang, and the item is dead after its only attempt.
func TestWorkerEndsAfterHang(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	n := startNATS(t, store)
	n.endlessCampaign(t, store)
	w := beginWorker(t, "--nats", n.url, "--name", "first", "--stage-timeout", "solve=300ms")
	e := w.end()
	wantCode(t, e, 10)
	wantMessage(t, e, "an item hung", "stage solve took")
	wantMessage(t, e, "ddiff: the worker hung", "raise --stage-timeout")
	data, _, err := n.board.Get(t.Context(), record.KeyWorkerPrefix+"first")
	must(t, err)
	var beat record.Beat
	must(t, json.Unmarshal(data, &beat))
	if !strings.Contains(beat.Hung, "stage solve took") {
		t.Errorf("the worker's record is %+v", beat)
	}
	for event, err := range n.queue("endless").Results(t.Context(), 0) {
		must(t, err)
		var r item.Event
		must(t, json.Unmarshal(event.Payload, &r))
		if r.Outcome != item.OutcomeDead || !strings.Contains(r.Reason, "stage solve took") {
			t.Errorf("the item is %s: %q", r.Outcome, r.Reason)
		}
		return
	}
	t.Error("the item is not dead")
}

// TestAttackListen: without tokens a coordinator answers its own user only, by a file that others cannot read and commands find.
func TestAttackListen(t *testing.T) {
	t.Parallel()
	n := startNATS(t, "")
	address := freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	must(t, err)
	c := startProcess(t, nil, "coordinator", "--nats", n.url, "--store", t.TempDir(), "--listen", address)
	if text := awaitAnswer(t, address, "/api/v1/campaigns", http.StatusUnauthorized); strings.Contains(text, "campaigns\":") {
		t.Errorf("an answer without a token: %s", text)
	}
	path := filepath.Join(cache, "ddiff", "pages", "127.0.0.1_"+port)
	info, err := os.Stat(path)
	must(t, err)
	folder, err := os.Stat(filepath.Dir(path))
	must(t, err)
	if info.Mode().Perm() != 0o600 || folder.Mode().Perm() != 0o700 {
		t.Errorf("the modes of the token and its folder are %v and %v", info.Mode(), folder.Mode())
	}
	var thief net.Listener // another user's
	if thief, err = new(net.ListenConfig).Listen(t.Context(), "tcp", "[::1]:"+port); err == nil {
		defer thief.Close()
	}
	list := func(env ...string) ended {
		cmd := command(t, "list", "--server", "http://localhost:"+port)
		cmd.Env = append(cmd.Env, env...)
		return end(t, cmd)
	}
	wantCode(t, list(), 0)
	stranger := list("XDG_CACHE_HOME=" + t.TempDir())
	wantCode(t, stranger, 2)
	wantMessage(t, stranger, "needs the token")
	if text := c.stderr.text(); strings.Contains(text, strings.TrimSpace(string(read(t, path)))) {
		t.Errorf("the log has the token: %s", text)
	}
	c.signal(t, syscall.SIGTERM)
	c.end()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the token remains: %v", err)
	}
}

// TestAttackView: the page of an output needs the secret of its address.
func TestAttackView(t *testing.T) {
	t.Parallel()
	out := tiny(t, "--images", photographs(t, "coffee"), "--task", "hdr")
	p := startProcess(t, nil, "view", out)
	p.wait(t, &p.stdout, "(until Ctrl-C)", 1)
	at := regexp.MustCompile(`page: http://(127\.0\.0\.1:\d+)/#token=(\w{20,}) `).FindStringSubmatch(p.stdout.text())
	if at == nil {
		t.Fatalf("no address with a token\n%s", p.stdout.text())
	}
	for path, want := range map[string]int{"/": http.StatusOK, "/api/v1/campaigns": http.StatusUnauthorized, "/api/v1/campaigns/out/report/index.html": http.StatusUnauthorized} {
		if code, text := ask(t, at[1], path); code != want {
			t.Errorf("%s without the token: %d %s", path, code, text)
		}
	}
	jar, err := cookiejar.New(nil)
	must(t, err)
	browser := &http.Client{Jar: jar}
	const door = "/api/v1/~0123456789abcdef0123456789abcdef"
	send := func(method, path, dest, content string) (status int, policy, body string) {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+at[1]+door+path, strings.NewReader(content))
		must(t, err)
		if dest != "" {
			r.Header.Set("Sec-Fetch-Dest", dest)
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := browser.Do(r)
		must(t, err)
		defer answer.Body.Close()
		data, err := io.ReadAll(answer.Body)
		must(t, err)
		return answer.StatusCode, answer.Header.Get("Content-Security-Policy"), string(data)
	}
	get := func(path, dest string) (int, string, string) { return send(http.MethodGet, path, dest, "") }
	if status, _, body := send(http.MethodPost, "/session", "empty", `{"token":"`+at[2]+`"}`); status != http.StatusOK {
		t.Fatalf("sign in: %d %s", status, body)
	}
	status, _, body := get("/campaigns", "empty")
	var list struct {
		Campaigns []struct{ Campaign struct{ ID string } }
	}
	must(t, json.Unmarshal([]byte(body), &list))
	if status != http.StatusOK || len(list.Campaigns) != 1 {
		t.Fatalf("with the session: %d %s", status, body)
	}
	// A report is in a frame that its page cannot leave, also in a browser that does not say what it asks for.
	report := "/campaigns/" + list.Campaigns[0].Campaign.ID + "/report/index.html"
	for path, dests := range map[string][]string{report: {"document", "", "iframe", "empty"}, report + "?framed=true": {"document", "empty"}} {
		for _, dest := range dests {
			if status, policy, body := get(path, dest); status != http.StatusOK || !strings.Contains(policy, "frame-src 'self'") || !strings.Contains(body, `<iframe title="Report" sandbox=`) {
				t.Errorf("the frame of a report for %q: %d %s %.300s", dest, status, policy, body)
			}
		}
	}
	if status, policy, body := get(report+"?framed=true", "iframe"); status != http.StatusOK || !strings.HasPrefix(policy, "sandbox allow-scripts") || strings.Contains(policy, "allow-top-navigation") ||
		!strings.Contains(policy, "frame-ancestors 'self'") || !strings.Contains(body, "coffee") {
		t.Errorf("a report: %d %s", status, policy)
	}
	p.signal(t, syscall.SIGINT)
	p.end()
}
