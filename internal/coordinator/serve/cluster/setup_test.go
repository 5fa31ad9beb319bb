package cluster_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ddiff/api"
	"ddiff/coordinator"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/boardtest"
	"ddiff/internal/coordinator/index"
	"ddiff/internal/coordinator/ledger"
	"ddiff/internal/coordinator/serve"
	"ddiff/internal/coordinator/serve/cluster"
	"ddiff/internal/coordinator/serve/leadertest"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/regular"
	"ddiff/internal/restore/photograph"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var must = boardtest.Must

// fixture is a cluster without coordinator and workers: a real queue server and a store with what they would have written.
type fixture struct {
	t     *testing.T
	nc    *queue.Conn
	board *queue.Board
	store *storage.Dir
	dir   string // of the store
	logs  *logBuffer
	most  int // campaigns of an owner; 0: the default
}

// logBuffer has the log of a server.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	_, nc, b := boardtest.Start(t)
	dir := t.TempDir()
	s, err := storage.NewDir(dir)
	must(t, err)
	return &fixture{t: t, nc: nc, board: b, store: s, dir: dir, logs: &logBuffer{}}
}

// open returns a view of the cluster, as each coordinator has one.
func (f *fixture) open() *cluster.Cluster { return f.openOver(f.store) }

func (f *fixture) openOver(s storage.Store) *cluster.Cluster {
	f.t.Helper()
	c := cluster.New(cluster.Config{
		Board: f.board, Store: s, Name: "first", Version: "test", StoreAddress: "/store", Rows: manifest.Rows,
		Catalogue: manifest.Catalogue{Methods: method.Builtin(), Operators: operator.Builtin()},
		Inspect:   func(id string) (*queue.Queue, error) { return queue.Inspect(f.nc, queue.Config{Campaign: id}) },
		Usage:     func(ctx context.Context) ([]queue.StreamUsage, error) { return queue.Usage(ctx, f.nc) },
		Logger:    slog.New(slog.NewTextHandler(f.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	f.t.Cleanup(c.Close)
	return c
}

// serve serves the API on localhost until the test ends, and returns its address.
func (f *fixture) serve(c *cluster.Cluster, tokens bool) string {
	f.t.Helper()
	cfg := serve.Config{
		Backend: c, Controller: c, Kind: "cluster", Version: "test", Tasks: json.RawMessage(`[]`), Methods: json.RawMessage(`[]`),
		Logger: slog.New(slog.NewTextHandler(io.MultiWriter(f.t.Output(), f.logs), nil)), AnswerLimit: 8 * time.Second, Heartbeat: time.Second,
	}
	if tokens {
		admin := filepath.Join(f.t.TempDir(), "admin")
		must(f.t, os.WriteFile(admin, []byte(administrator+"\n"), 0o600))
		var err error
		cfg.Tokens, err = serve.WithAdmin(admin, c)
		must(f.t, err)
	} else {
		cfg.Secret = localSecret
	}
	s, err := serve.New(cfg)
	must(f.t, err)
	l, err := new(net.ListenConfig).Listen(f.t.Context(), "tcp", "127.0.0.1:0")
	must(f.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l, serve.TLS{}) }()
	f.t.Cleanup(func() {
		cancel()
		<-done //nolint:errcheck // that of the context
	})
	return "http://" + l.Addr().String()
}

// administrator is the token of the file of a server with tokens.
const administrator = "an administrator's token of a test"

// localSecret is the token of a server without others. Requests that state no other have it.
const localSecret = "secret of the user"

const campaignFile = "name: night\ndataset: {path: /photos}\ntasks: [denoise]\n"

// campaign submits a campaign and returns its id. Change changes the record as a coordinator does.
func (f *fixture) campaign(name, owner string, change func(c *record.Campaign)) string {
	f.t.Helper()
	spec, err := manifest.Parse(name, []byte("name: "+name+"\ndataset: {path: /photos}\ntasks: [denoise]\n"), "/")
	must(f.t, err)
	c := board.NewRecord(spec, board.Order{Owner: owner}, time.Now())
	change(c)
	must(f.t, index.New(f.store).Open(f.t.Context(), c))
	must(f.t, board.NewWriter(f.board, f.store).Create(f.t.Context(), c))
	return c.ID
}

// windows stores n items in windows of a size, of two tasks, and returns their ids.
func (f *fixture) windows(campaign string, n, size int) []string {
	f.t.Helper()
	var ids []string
	for begin := 0; begin < n; begin += size {
		w := &shard.Window{Header: shard.Header{
			Schema: 1, Campaign: campaign, Number: begin / size, Item: begin, Items: min(size, n-begin), Last: begin+size >= n,
		}}
		for i := begin; i < min(begin+size, n); i++ {
			it := item.Item{ID: boardtest.ID(i), Campaign: campaign, Index: i, Name: fmt.Sprintf("image%07d", i/2), Task: []string{"denoise", "hdr"}[i%2], Method: "ddiff", Solver: json.RawMessage(`{}`)}
			ids = append(ids, it.ID)
			w.Items = append(w.Items, it)
		}
		data, err := w.Encode()
		must(f.t, err)
		must(f.t, f.store.Put(f.t.Context(), shard.Key(campaign, w.Number), data))
	}
	return ids
}

// fold stores a part of the ledger with items that are done.
func (f *fixture) fold(campaign string, ids []string) {
	f.t.Helper()
	p := ledger.NewParts(ledger.PartsConfig{
		Store: f.store, Campaign: campaign, Fold: 1, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		Purge: func(context.Context, uint64) error { return nil },
	})
	for _, id := range ids {
		p.NoteOutcome(id, 0, ledger.Done, "", false)
	}
	must(f.t, p.Fold(f.t.Context(), 0, false))
}

// result stores the result of item i in an output.
func (f *fixture) result(output, id string, i int) {
	f.t.Helper()
	path := filepath.Join(f.dir, output, item.Key(id, item.FileResult))
	must(f.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(f.t, os.WriteFile(path, encoded(f.t, id, i), 0o644)) // a store would sync each file
}

// encoded is the result of item i.
func encoded(t *testing.T, id string, i int) []byte {
	t.Helper()
	psnr := float64(i)
	r := item.Result{
		Schema: 1, Item: item.Item{ID: id}, Outcome: item.OutcomeDone, Worker: "gpu-1", Seconds: 2, Metrics: item.Metrics{"psnr": psnr},
	}
	if i%10 == 0 {
		r.Warnings = []item.Warning{{Code: photograph.WarnWorse, Text: "worse"}}
	}
	data, err := item.EncodeResult(&r)
	must(t, err)
	return data
}

// outcome publishes an outcome, as a worker does.
func (f *fixture) outcome(campaign, id string, o item.Outcome, reason string) {
	f.t.Helper()
	f.outcomeOfRound(campaign, id, o, reason, 0)
}

// outcomeOfRound is outcome for an item that was retried.
func (f *fixture) outcomeOfRound(campaign, id string, o item.Outcome, reason string, round int) {
	f.t.Helper()
	q, err := queue.Open(f.t.Context(), f.nc, queue.Config{Campaign: campaign})
	must(f.t, err)
	data, err := json.Marshal(item.Event{Outcome: o, Reason: reason})
	must(f.t, err)
	must(f.t, q.PublishResult(f.t.Context(), id, round, data))
}

// answer is an answer of the server.
type answer struct {
	status int
	body   string
	header http.Header
}

// send sends a request with headers, given as "Name: value".
func send(t *testing.T, method, url, body string, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	must(t, err)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
		if name == "Host" {
			r.Host = value
		}
	}
	if r.Header.Get("Authorization") == "" && r.Header.Get("Cookie") == "" {
		r.Header.Set("Authorization", "Bearer "+localSecret)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	a, err := client.Do(r)
	must(t, err)
	data, err := io.ReadAll(a.Body)
	must(t, err)
	must(t, a.Body.Close())
	return answer{a.StatusCode, string(data), a.Header}
}

// lead starts the leader, which executes verbs and begins no campaign.
func (f *fixture) lead() (stop func()) { return f.leadOver(f.store) }

func (f *fixture) leadOver(s storage.Store) (stop func()) {
	f.t.Helper()
	return leadertest.Lead(f.t, f.nc, f.board, s, func(c *coordinator.Config) { c.Campaigns = f.most })
}

// token stores a token, as the leader does.
func (f *fixture) token(_ *cluster.Cluster, owner string, role api.Role) string {
	f.t.Helper()
	secret := "ddiff_" + owner + string(role)
	sum := regular.SHA256([]byte(secret))
	data, err := json.Marshal(board.Token{SHA256: sum, Token: api.Token{ID: sum[:12], Owner: owner, Role: role, Created: time.Now().UTC(), Ends: time.Now().Add(time.Hour)}})
	must(f.t, err)
	must(f.t, f.store.Put(f.t.Context(), "coordinators/tokens/"+sum+".json", data))
	must(f.t, f.board.Put(f.t.Context(), record.KeyTokenPrefix+sum, data))
	return secret
}

// client returns a client of the API.
func client(t *testing.T, url, token string) *api.Client {
	t.Helper()
	c, err := api.NewClient(api.ClientConfig{URL: url, Token: cmp.Or(token, localSecret)})
	must(t, err)
	return c
}
