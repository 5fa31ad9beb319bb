package notify_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/boardtest"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/coordinator/notify"
	"ddiff/internal/lifecycle"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/storage"
)

const secret = "a key of the tests, long enough"

// received is a request that the receiver has had.
type received struct {
	header  http.Header
	content []byte
}

// receiver is an https server of a person. answer gives the status of request n, from 0.
func receiver(t *testing.T, answer func(n int, w http.ResponseWriter)) (*httptest.Server, <-chan received) {
	t.Helper()
	requests := make(chan received, 100)
	n := 0
	var mu sync.Mutex
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		requests <- received{r.Header.Clone(), content}
		answer(n, w)
		n++
	}))
	t.Cleanup(server.Close)
	return server, requests
}

// cluster is a board, a store and the notifiers of leaders.
type cluster struct {
	board *queue.Board
	store storage.Store
	log   bytes.Buffer
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	_, _, b := boardtest.Start(t)
	store, err := storage.NewDir(t.TempDir())
	boardtest.Must(t, err)
	return &cluster{board: b, store: store}
}

// lead runs the notifier of a leader until the returned function is called.
func (c *cluster) lead(t *testing.T, server *httptest.Server, hosts ...string) (stop func()) {
	t.Helper()
	return run(t, c.notifier(t, server, hosts...))
}

// notifier returns the notifier of a process.
func (c *cluster) notifier(t *testing.T, server *httptest.Server, hosts ...string) *notify.Notifier {
	t.Helper()
	if hosts == nil {
		hosts = []string{host(t, server)}
	}
	return notify.New(notify.Config{
		Board: c.board, Store: c.store, Hosts: hosts, Secret: []byte(secret), Transport: server.Client().Transport, Pause: time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(&c.log, nil)),
	})
}

// run runs a notifier for a term, until the returned function is called.
func run(t *testing.T, n *notify.Notifier) (stop func()) {
	t.Helper()
	service := lifecycle.Go(t.Context(), n.Run)
	t.Cleanup(service.Stop)
	return service.Stop
}

func host(t *testing.T, server *httptest.Server) string {
	t.Helper()
	u, err := url.Parse(server.URL)
	boardtest.Must(t, err)
	return u.Host
}

// submit puts a campaign on the board.
func (c *cluster) submit(t *testing.T, name, address string) string {
	t.Helper()
	spec := &manifest.Spec{Name: name, Notify: address}
	record, _, err := recordtest.Submit(t.Context(), c.board, c.store, spec, board.Order{}, time.Unix(1e9, 0))
	boardtest.Must(t, err)
	return record.ID
}

// enter moves a campaign to a phase, as its coordinator does.
func (c *cluster) enter(t *testing.T, id string, p record.Phase) {
	t.Helper()
	status := record.Status{ID: id, Phase: p, Counts: record.Counts{Items: 7, Done: 7}}
	data, err := json.Marshal(status)
	boardtest.Must(t, err)
	boardtest.Must(t, c.board.Put(t.Context(), record.KeyStatusPrefix+id, data))
	_, err = recordtest.Update(t.Context(), c.board, c.store, id, func(c *record.Campaign) error {
		c.Phase, c.Changes = p, c.Changes+1
		return nil
	})
	boardtest.Must(t, err)
}

// record is the key of the record of a message.
func recordOf(campaign, number string) string {
	return "campaigns/" + campaign + "/notifications/" + campaign + "." + number + ".json"
}

// delivery waits for the record of a message.
func (c *cluster) delivery(t *testing.T, campaign, number string) (d notify.Delivery) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		data, err := c.store.Get(ctx, recordOf(campaign, number))
		if err == nil {
			boardtest.Must(t, json.Unmarshal(data, &d))
			return d
		}
		if !errors.Is(err, storage.ErrNotFound) {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

func taken(_ int, w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) }

// A message has the phase, the counts and a signature that the receiver can check.
func TestMessage(t *testing.T) {
	c := newCluster(t)
	server, requests := receiver(t, taken)
	c.lead(t, server)
	id := c.submit(t, "night", server.URL+"/hook")
	c.enter(t, id, record.PhaseRunning) // nobody waits for it
	c.enter(t, id, record.PhaseFinished)
	if d := c.delivery(t, id, "2.0"); d.Status != http.StatusNoContent || d.Error != "" || d.Phase != record.PhaseFinished {
		t.Errorf("recorded %+v", d)
	}
	r := <-requests
	var got struct {
		Type string
		Data record.Status
	}
	boardtest.Must(t, json.Unmarshal(r.content, &got))
	if got.Type != "campaign.finished" || got.Data.ID != id || got.Data.Counts.Done != 7 {
		t.Errorf("sent %s", r.content)
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(r.header.Get("webhook-id") + "." + r.header.Get("webhook-timestamp") + "." + string(r.content)))
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); r.header.Get("webhook-signature") != want {
		t.Errorf("the signature is %q, want %q", r.header.Get("webhook-signature"), want)
	}
	if len(requests) != 0 {
		t.Errorf("%d more messages", len(requests))
	}
}

// A message goes again after an answer 503, with one id; and not again when another coordinator leads.
func TestAttempts(t *testing.T) {
	c := newCluster(t)
	server, requests := receiver(t, func(n int, w http.ResponseWriter) {
		if n < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	stop := c.lead(t, server)
	id := c.submit(t, "night", server.URL)
	c.enter(t, id, record.PhasePaused)
	c.delivery(t, id, "1.0")
	stop()
	for range 4 {
		if r := <-requests; r.header.Get("webhook-id") != id+".1.0" {
			t.Errorf("the id is %q", r.header.Get("webhook-id"))
		}
	}
	c.lead(t, server)
	other := c.submit(t, "other", server.URL)
	c.enter(t, other, record.PhaseFinished)
	c.delivery(t, other, "1.0")
	if r := <-requests; r.header.Get("webhook-id") != other+".1.0" {
		t.Errorf("the next leader sent %q again", r.header.Get("webhook-id"))
	}
}

// The next leader sends what an interrupted one could not.
func TestNextLeader(t *testing.T) {
	c := newCluster(t)
	block := make(chan struct{})
	server, requests := receiver(t, func(n int, _ http.ResponseWriter) {
		if n == 0 {
			<-block
		}
	})
	stop := c.lead(t, server)
	id := c.submit(t, "night", server.URL)
	c.enter(t, id, record.PhaseFinished)
	<-requests
	stop() // while the receiver has not answered
	close(block)
	if _, err := c.store.Get(t.Context(), recordOf(id, "1.0")); !errors.Is(err, storage.ErrNotFound) {
		t.Fatalf("an interrupted message has a record: %v", err)
	}
	c.lead(t, server)
	if d := c.delivery(t, id, "1.0"); d.Error != "" {
		t.Errorf("recorded %+v", d)
	}
	<-requests
}

// A receiver that refuses, or that leads elsewhere, gets one request.
func TestGivenUp(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusTemporaryRedirect} {
		c := newCluster(t)
		server, requests := receiver(t, func(n int, w http.ResponseWriter) {
			if n == 0 {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(status)
			}
		})
		c.lead(t, server)
		id := c.submit(t, "night", server.URL+"/secret-path")
		c.enter(t, id, record.PhaseRejected)
		if d := c.delivery(t, id, "1.0"); d.Status != status || d.Error == "" || strings.Contains(d.Error, "secret-path") {
			t.Errorf("recorded %+v", d)
		}
		<-requests
		if len(requests) != 0 {
			t.Errorf("%d requests after status %d", len(requests), status)
		}
	}
}

// Nothing is sent to a server that is not permitted, nor without permitted servers.
func TestCheck(t *testing.T) {
	c := newCluster(t)
	server, requests := receiver(t, taken)
	c.lead(t, server, "hooks.example.org")
	id := c.submit(t, "night", server.URL)
	c.enter(t, id, record.PhaseFinished)
	if d := c.delivery(t, id, "1.0"); !strings.Contains(d.Error, "--notify-host") || len(requests) != 0 {
		t.Errorf("recorded %+v after %d requests", d, len(requests))
	}
	n := notify.New(notify.Config{Hosts: []string{"hooks.example.org", "other.example.org:8443"}})
	for address, permitted := range map[string]bool{
		"https://hooks.example.org/a": true, "https://HOOKS.example.org": true, "https://other.example.org:8443/": true,
		"https://other.example.org/": false, "https://hooks.example.org.evil.example/": false, "https://hooks.example.org@evil.example/": false, "::": false,
	} {
		if err := n.Check(address); (err == nil) != permitted {
			t.Errorf("%s: %v", address, err)
		}
	}
	if err := (*notify.Notifier)(nil).Check("https://hooks.example.org/"); err == nil {
		t.Error("a coordinator without notifications permits one")
	}
}

// A receiver that asks for a long pause gets the longest one of the notifier; one that does not answer delays no other receiver.
func TestSlowReceivers(t *testing.T) {
	c := newCluster(t)
	block := make(chan struct{})
	dead := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-block }))
	t.Cleanup(dead.Close)
	t.Cleanup(func() { close(block) })
	slow, requests := receiver(t, func(n int, w http.ResponseWriter) {
		if n == 0 {
			w.Header().Set("Retry-After", "31536000")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	c.lead(t, slow, host(t, dead), host(t, slow))
	for i := range 20 {
		c.enter(t, c.submit(t, "dead"+strconv.Itoa(i), dead.URL), record.PhaseFinished)
	}
	id := c.submit(t, "night", slow.URL)
	c.enter(t, id, record.PhaseFinished)
	if d := c.delivery(t, id, "1.0"); d.Error != "" || len(requests) != 2 {
		t.Errorf("recorded %+v after %d requests", d, len(requests))
	}
}

// A process that leads again sends the messages that waited for a busy receiver at the end of its earlier term.
func TestSecondTerm(t *testing.T) {
	c := newCluster(t)
	requests, block := make(chan bool, 4*busy), make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		requests <- true
		<-block
	}))
	t.Cleanup(server.Close)
	unblock := sync.OnceFunc(func() { close(block) })
	t.Cleanup(unblock)
	var ids []string
	for i := range 2 * busy {
		id := c.submit(t, "night"+strconv.Itoa(i), server.URL)
		c.enter(t, id, record.PhaseFinished)
		ids = append(ids, id)
	}
	n := c.notifier(t, server)
	stop := run(t, n)
	for range busy {
		<-requests
	}
	stop()
	unblock()
	run(t, n)
	for _, id := range ids {
		if d := c.delivery(t, id, "1.0"); d.Error != "" {
			t.Errorf("recorded %+v", d)
		}
	}
}

// The messages of campaigns that were deleted meanwhile keep no other message waiting.
func TestDeletedCampaigns(t *testing.T) {
	c := newCluster(t)
	c.store = leavingStore{c.store, c.board}
	server, _ := receiver(t, taken)
	c.lead(t, server)
	for i := range busy {
		c.enter(t, c.submit(t, "gone"+strconv.Itoa(i), server.URL), record.PhaseCancelled)
	}
	id := c.submit(t, "night", server.URL)
	c.enter(t, id, record.PhaseFinished)
	if d := c.delivery(t, id, "1.0"); d.Error != "" {
		t.Errorf("recorded %+v", d)
	}
}

// busy is the number of messages that one receiver gets at a time.
const busy = 16

// leavingStore deletes the record of a campaign "gone" from the board before it answers for it.
type leavingStore struct {
	storage.Store
	board *queue.Board
}

func (s leavingStore) Stat(ctx context.Context, key string) (storage.Info, error) {
	if id := strings.Split(key, "/")[1]; strings.HasPrefix(id, "gone") {
		if err := s.board.Delete(ctx, record.KeyCampaignPrefix+id); err != nil {
			return storage.Info{}, err
		}
	}
	return s.Store.Stat(ctx, key)
}
