package cluster_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/api"
	"ddiff/internal/coordinator/board/boardtest"
	"ddiff/internal/coordinator/serve/cluster"
	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/storage"
)

// wantCondition returns the condition of an error of the API.
func wantCondition(err error) error {
	var e *api.Error
	if !errors.As(err, &e) {
		return err
	}
	return e.Unwrap()
}

// TestHostileRequests: each request gets an answer below 500 that gives nothing away.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.open()
	url := f.serve(c, false)
	id := f.campaign("night", "", func(*record.Campaign) {})
	outside := f.campaign("outside", "", func(c *record.Campaign) { c.Output = "x/../priors" })
	f.windows(id, 2, 2)
	must(t, f.store.Put(t.Context(), id+"/index.html", []byte("<script>")))
	records := f.campaign("records", "", func(c *record.Campaign) { c.Output = "priors" })
	must(t, f.store.Put(t.Context(), "priors/secret", []byte("secret")))
	base := url + "/api/v1"
	campaign := base + "/campaigns/" + id
	file := campaign + "/items/" + boardtest.ID(0) + "/files/"
	for name, r := range map[string]struct {
		method, url, body string
		headers           []string
		status            int
	}{
		"path":               {"GET", campaign + "/report/..%2f..%2fpriors%2fsecret", "", nil, 404},
		"encoded dots":       {"GET", campaign + "/report/%2e%2e/%2e%2e/priors/secret", "", nil, 404},
		"absolute path":      {"GET", campaign + "/report/%2fetc%2fpasswd", "", nil, 404},
		"zero byte":          {"GET", campaign + "/report/index.html%00.png", "", nil, 404},
		"hidden file":        {"GET", campaign + "/report/.ddiff/lock", "", nil, 404},
		"name of a file":     {"GET", file + "..%2f..%2f..%2fpriors%2fsecret", "", nil, 422},
		"id of an item":      {"GET", campaign + "/items/..%2fx/files/a.png", "", nil, 422},
		"id of a campaign":   {"GET", base + "/campaigns/_request-x", "", nil, 422},
		"unknown campaign":   {"GET", base + "/campaigns/nobody", "", nil, 404},
		"large body":         {"POST", base + "/campaigns", strings.Repeat("#", 1<<20+1<<16), []string{"Content-Type: application/yaml"}, 413}, // so little more that the server reads it to its end
		"no campaign":        {"POST", base + "/campaigns", "{", []string{"Content-Type: application/json"}, 422},
		"empty body":         {"POST", base + "/campaigns", "", []string{"Content-Type: application/json"}, 400},
		"relative path":      {"POST", base + "/campaigns", "dataset: {path: photos}\ntasks: [denoise]\n", []string{"Content-Type: application/yaml"}, 422},
		"output outside":     {"GET", base + "/campaigns/" + outside + "/report/secret", "", nil, 404},
		"output of records":  {"GET", base + "/campaigns/" + records + "/report/secret", "", nil, 404},
		"damaged JSON":       {"POST", campaign + "/retry", `{"items":`, []string{"Content-Type: application/json"}, 400},
		"wrong type":         {"POST", campaign + "/retry", `{"items":7}`, []string{"Content-Type: application/json"}, 422},
		"unknown field":      {"POST", campaign + "/retry", `{"everything":true}`, []string{"Content-Type: application/json"}, 422},
		"unknown parameter":  {"GET", base + "/workers?all=1", "", nil, 422},
		"damaged cursor":     {"GET", campaign + "/items?cursor=AAAA", "", nil, 422},
		"unknown order":      {"GET", campaign + "/items?sort=password", "", nil, 422},
		"limit":              {"GET", campaign + "/items?limit=100000", "", nil, 422},
		"page of a stranger": {"POST", campaign + "/cancel", "", []string{"Sec-Fetch-Site: cross-site", "Origin: https://evil.example"}, 403},
		"another origin":     {"POST", campaign + "/cancel", "", []string{"Origin: https://evil.example"}, 403},
		"no token":           {"GET", base + "/campaigns", "", []string{"Authorization: Bearer "}, 401},
		"another token":      {"POST", campaign + "/cancel", "", []string{"Authorization: Bearer ddiff_false"}, 401},
		"method":             {"PUT", campaign, "", nil, 405},
		"unknown route":      {"GET", campaign + "/secrets", "", nil, 404},
	} {
		a := send(t, r.method, r.url, r.body, r.headers...)
		if a.status != r.status || a.body == "secret" {
			t.Errorf("%s: %d %s, want %d", name, a.status, a.body, r.status)
		}
		if a.header.Get("Content-Type") != "application/problem+json" || a.header.Get("X-Content-Type-Options") != "nosniff" || a.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: headers %v", name, a.header)
		}
	}
	if s, err := c.Campaign(t.Context(), id); err != nil || s.Campaign.Wanted != record.WantRun {
		t.Errorf("a stranger has changed the campaign to %q, %v", s.Campaign.Wanted, err)
	}
}

// TestHostileNames: names of images and owners are data in JSON, and never markup or headers.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	url := f.serve(f.open(), false)
	id := f.campaign("night", "<img src=x>\r\nSet-Cookie: a=b", func(*record.Campaign) {})
	f.windows(id, 2, 2)
	a := send(t, http.MethodGet, url+"/api/v1/campaigns/"+id, "")
	if a.status != 200 || strings.Contains(a.body, "<img") || a.header.Get("Set-Cookie") != "" || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %s %v", a.status, a.body, a.header)
	}
	must(t, f.store.Put(t.Context(), id+"/"+item.Key(boardtest.ID(0), "page.html"), []byte("<script>alert(1)</script>")))
	a = send(t, http.MethodGet, url+"/api/v1/campaigns/"+id+"/items/"+boardtest.ID(0)+"/files/page.html", "")
	if a.header.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(a.header.Get("Content-Security-Policy"), "sandbox;") {
		t.Errorf("a page of a worker: %v", a.header)
	}
}

// TestSlowClients: clients that send or read slowly do not hinder others, and are disconnected.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	url := f.serve(f.open(), false)
	host := strings.TrimPrefix(url, "http://")
	var slow []net.Conn
	for range 200 {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", host)
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprintf(conn, "GET /api/v1/me HTTP/1.1\r\nHost: %s\r\nX-Slow: ", host)
		must(t, err)
		slow = append(slow, conn)
	}
	begin := time.Now()
	if a := send(t, http.MethodGet, url+"/api/v1/me", ""); a.status != 200 || time.Since(begin) > 20*time.Second {
		t.Errorf("beside slow clients: %d after %v", a.status, time.Since(begin))
	}
	must(t, slow[0].SetReadDeadline(time.Now().Add(2*time.Minute)))
	if line, _ := bufio.NewReader(slow[0]).ReadString('\n'); line != "" && !strings.Contains(line, "408") {
		t.Errorf("a slow client got %q", line)
	}
	if d := time.Since(begin); d > time.Minute {
		t.Errorf("a slow client was disconnected after %v", d)
	}
}

// TestSecretsInAddresses: no answer and no event has the secret part of an address of a campaign.
func TestSecretsInAddresses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	url := f.serve(f.open(), false)
	f.campaign("night", "", func(c *record.Campaign) {
		c.Spec.Dataset.Path = "https://example.org/list.csv?key=secret"
		c.Spec.Tasks = append(c.Spec.Tasks, item.Task{Name: "own", Operator: "https://example.org/op.onnx?key=secret"},
			item.Task{Name: "denoise", Mask: "https://example.org/m.png?key=secret", Kernel: "https://example.org/k.png?key=secret"})
		c.Operators = []record.OperatorFile{{Path: "https://example.org/op.onnx?key=secret", SHA256: strings.Repeat("0", 64)}}
		c.Spec.Notify = "https://hooks.example.org/services/secret?key=secret"
	})
	var a answer
	for begin := time.Now(); !strings.Contains(a.body, "https://hooks.example.org") && time.Since(begin) < time.Minute; time.Sleep(10 * time.Millisecond) {
		a = send(t, http.MethodGet, url+"/api/v1/campaigns", "") // the list may be older than the record
	}
	if strings.Contains(a.body, "secret") || !strings.Contains(a.body, "https://hooks.example.org") {
		t.Errorf("the list has %s", a.body)
	}
	if _, data := openStream(t, url+"/api/v1/events", "1").next(t, "campaign", ""); strings.Contains(data, "secret") {
		t.Errorf("an event has %s", data)
	}
}

// slowRecord is a store in which the record of one campaign does not come.
type slowRecord struct {
	storage.Store
	asked chan struct{}
}

// Get implements storage.Store.
func (s slowRecord) Get(ctx context.Context, key string) ([]byte, error) {
	if strings.HasPrefix(key, "campaigns/slow/") {
		close(s.asked)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Store.Get(ctx, key)
}

// TestSlowRecord: a list that waits for the store does not delay the lists of other campaigns.
func TestSlowRecord(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	store := slowRecord{f.store, make(chan struct{})}
	c := f.openOver(store)
	id := f.campaign("night", "", func(*record.Campaign) {})
	f.windows(id, 2, 2)
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	waiting.Go(func() {
		if _, err := c.Items(ctx, "slow", api.ItemQuery{}); err == nil {
			t.Error("a list without a record")
		}
	})
	<-store.asked
	limited, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	if page, err := c.Items(limited, id, api.ItemQuery{Limit: 10}); err != nil || page.Total != 2 {
		t.Errorf("beside it: %+v, %v", page, err)
	}
}

// TestCountsAtOnce: of many checks only some count their datasets at once; the others answer without numbers.
func TestCountsAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var now, most atomic.Int32
	counted := make(chan struct{})
	c := cluster.New(cluster.Config{
		Board: f.board, Catalogue: manifest.Catalogue{Methods: method.Builtin(), Operators: operator.Builtin()},
		Rows: func(_ context.Context, _ manifest.Dataset, _ func(manifest.Skip)) iter.Seq2[manifest.Row, error] {
			return func(func(manifest.Row, error) bool) {
				n := now.Add(1)
				defer now.Add(-1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				<-counted
			}
		},
	})
	t.Cleanup(c.Close)
	var checks sync.WaitGroup
	var uncounted atomic.Int32
	for range 10 {
		checks.Go(func() {
			checked, err := c.Check(t.Context(), []byte(campaignFile), api.Order{})
			if err != nil || len(checked.Problems) > 0 {
				t.Errorf("%+v, %v", checked, err)
			}
			if checked.Rows == nil && checked.More {
				uncounted.Add(1)
			}
		})
	}
	until(t, "answers without numbers", func() bool { return uncounted.Load() == 6 })
	close(counted)
	checks.Wait()
	if most.Load() != 4 {
		t.Errorf("%d datasets were counted at once, want 4", most.Load())
	}
}

// TestAttackClocks: ages of beats are those by the clock of the queue server, whatever time a worker or a coordinator states.
func TestAttackClocks(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	url := f.serve(f.open(), false)
	for _, key := range []string{record.KeyWorkerPrefix, record.KeyCoordinatorPrefix} {
		must(t, f.board.Put(t.Context(), key+"late", []byte(`{"name":"late","id":"1","at":"1999-01-01T00:00:00Z"}`)))
		must(t, f.board.Put(t.Context(), key+"early", []byte(`{"name":"early","id":"2","at":"2199-01-01T00:00:00Z"}`)))
	}
	time.Sleep(50 * time.Millisecond) // an age needs time
	type beat struct {
		Name string
		Age  float64 `json:"age_s"`
	}
	var answers struct{ Workers, Coordinators []beat }
	for _, path := range []string{"workers", "cluster"} {
		must(t, json.Unmarshal([]byte(send(t, http.MethodGet, url+"/api/v1/"+path, "").body), &answers))
	}
	if len(answers.Workers) != 2 || len(answers.Coordinators) != 2 {
		t.Fatalf("beats %+v, want two of each", answers)
	}
	for _, b := range append(answers.Workers, answers.Coordinators...) {
		if b.Age <= 0 || b.Age > 60 {
			t.Errorf("%s: %g s since its beat", b.Name, b.Age)
		}
	}
}
