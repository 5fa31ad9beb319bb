package queue_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"ddiff/internal/queue"
)

func TestSetup(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	nc := join(t, server)
	js := streamsOf(t, nc)
	var log bytes.Buffer
	setup := func(cfg queue.SetupConfig) (created, changed int) {
		t.Helper()
		log.Reset()
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		must(t, queue.Setup(t.Context(), nc, cfg))
		return strings.Count(log.String(), "created stream"), strings.Count(log.String(), "changed stream")
	}
	for _, step := range []struct {
		cfg              queue.SetupConfig
		created, changed int
	}{
		{queue.SetupConfig{}, 3, 1}, // the work stream leaves half of the storage that it could have
		{queue.SetupConfig{}, 0, 0},
		{queue.SetupConfig{MaxResults: 7}, 0, 1},
		{queue.SetupConfig{MaxResults: 7}, 0, 0},
	} {
		if created, changed := setup(step.cfg); created != step.created || changed != step.changed {
			t.Fatalf("%+v creates %d streams and changes %d, want %d and %d", step.cfg, created, changed, step.created, step.changed)
		}
	}
	// Open leaves existing streams unchanged and creates deleted ones.
	must(t, js.DeleteStream(t.Context(), "DDIFF_RESULT"))
	open(t, server, queue.Config{})
	work, err := js.Stream(t.Context(), "DDIFF_WORK")
	must(t, err)
	room := work.CachedInfo().Config.MaxBytes
	if room < 512<<10 || room > 8<<30 {
		t.Errorf("work is limited to %d bytes", room)
	}
	for name, want := range map[string]jetstream.StreamConfig{
		"DDIFF_WORK": {MaxBytes: room, MaxMsgs: -1}, "DDIFF_RESULT": {MaxBytes: room / 2, MaxMsgs: 10_000_000},
		"KV_DDIFF_BOARD": {MaxBytes: -1, MaxMsgs: -1},
	} {
		stream, err := js.Stream(t.Context(), name)
		must(t, err)
		if got := stream.CachedInfo().Config; got.MaxBytes != want.MaxBytes || got.MaxMsgs != want.MaxMsgs || got.Discard != jetstream.DiscardNew {
			t.Errorf("stream %s is limited to %d bytes and %d messages, want %d and %d", name, got.MaxBytes, got.MaxMsgs, want.MaxBytes, want.MaxMsgs)
		}
	}
	// A foreign stream is refused.
	must(t, js.DeleteStream(t.Context(), "DDIFF_WORK"))
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "DDIFF_WORK", Subjects: []string{"theirs"}})
	must(t, err)
	err = queue.Setup(t.Context(), nc, queue.SetupConfig{})
	mustBe(t, err, queue.ErrConfig)
	if !strings.Contains(err.Error(), "DDIFF_WORK") {
		t.Errorf("error %q does not name the stream", err)
	}
}

// The number of campaigns is not limited by the server's default.
func TestManyCampaigns(t *testing.T) {
	t.Parallel()
	o := jetStream(t)
	o.JetStreamLimits.DefaultMaxConsumers = 1
	nc := dial(t, serve(t, o))
	must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{}))
	for i := range 4 {
		_, err := queue.Open(t.Context(), nc, queue.Config{Campaign: fmt.Sprint(i)})
		must(t, err)
	}
}

func TestSetupConfigValidate(t *testing.T) {
	t.Parallel()
	for _, cfg := range []queue.SetupConfig{
		{Replicas: 3, UnsyncedWork: false}, {Replicas: 5}, {Replicas: 1, UnsyncedWork: true}, {DedupWindow: 100 * time.Millisecond},
	} {
		must(t, cfg.Validate())
	}
	for field, cfg := range map[string]queue.SetupConfig{
		"Replicas":     {Replicas: 6},
		"UnsyncedWork": {UnsyncedWork: true, Replicas: 3}, "DedupWindow": {DedupWindow: 99 * time.Millisecond},
	} {
		err := cfg.Validate()
		mustBe(t, err, queue.ErrConfig)
		if !strings.Contains(err.Error(), field) {
			t.Errorf("error %q does not name %s", err, field)
		}
	}
}

// TestNumbersOfDeletedStreamsAreNotReused deletes every stream: the numbers of the new streams are higher.
func TestNumbersOfDeletedStreamsAreNotReused(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	q := open(t, server, queue.Config{})
	nc := join(t, server)
	js := streamsOf(t, nc)
	b := openBoard(t, nc)
	var result, revision uint64
	for round := range 3 {
		must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "1", Round: round}}))
		must(t, q.PublishResult(t.Context(), "1", round, nil))
		must(t, lease(t, q).Ack(t.Context()))
		next, err := b.Create(t.Context(), "k", nil)
		must(t, err)
		last, err := q.LastResult(t.Context())
		must(t, err)
		if last <= result || next <= revision {
			t.Fatalf("result %d and record %d follow %d and %d, want higher numbers", last, next, result, revision)
		}
		result, revision = last, next
		for _, name := range []string{"DDIFF_WORK", "DDIFF_RESULT", "KV_DDIFF_BOARD"} {
			must(t, js.DeleteStream(t.Context(), name))
		}
		for _, err := range q.Results(t.Context(), last) {
			mustBe(t, err, queue.ErrNotReady)
		}
		must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{}))
		q = open(t, server, queue.Config{})
	}
}

// listening returns the local addresses on which this process accepts TCP connections.
func listening(t *testing.T) []string {
	t.Helper()
	sockets := map[string]bool{}
	fds, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	for _, fd := range fds {
		target, err := os.Readlink(filepath.Join("/proc/self/fd", fd.Name()))
		if inode, ok := strings.CutPrefix(target, "socket:["); ok && err == nil {
			sockets[strings.TrimSuffix(inode, "]")] = true
		}
	}
	var addresses []string
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		f, err := os.Open(table)
		if os.IsNotExist(err) {
			continue
		}
		must(t, err)
		t.Cleanup(func() { must(t, f.Close()) })
		for lines := bufio.NewScanner(f); lines.Scan(); {
			// Fields 1, 3 and 9 are the local address, the state (0A: listening), the inode.
			fields := strings.Fields(lines.Text())
			if len(fields) > 9 && fields[3] == "0A" && sockets[fields[9]] {
				addresses = append(addresses, fields[1])
			}
		}
	}
	return addresses
}

func TestEmbeddedOpensNoPort(t *testing.T) {
	q := newQueue(t, queue.Config{})
	must(t, publish(t.Context(), q, "c", "1", nil))
	if got := listening(t); len(got) > 0 {
		t.Fatalf("the process listens on %v, want no port", got)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close() // the test is over
	if got := listening(t); len(got) != 1 {
		t.Fatalf("with a listener of the test: %v, want one address", got)
	}
}

func TestCallsAfterStopReturnErrClosed(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	q := open(t, server, queue.Config{})
	for range 2 {
		server.Stop()
	}
	mustBe(t, publish(t.Context(), q, "c", "1", nil), queue.ErrClosed)
	_, err := q.Lease(t.Context(), 1, patience)
	mustBe(t, err, queue.ErrClosed)
	_, err = server.Connect()
	mustBe(t, err, queue.ErrClosed)
	for _, err := range q.Results(t.Context(), 0) {
		mustBe(t, err, queue.ErrClosed)
	}
}

func TestEmbeddedStartErrors(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o644))
	blocked := t.TempDir()
	must(t, os.WriteFile(filepath.Join(blocked, "jetstream"), nil, 0o644))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	cases := []struct {
		name string
		ctx  context.Context
		dir  string
		want string
	}{
		{"no directory", t.Context(), "", "Dir is empty"},
		{"a file", t.Context(), file, "not a directory"},
		{"a file in the server's place", t.Context(), blocked, "JetStream"},
		{"cancelled", cancelled, t.TempDir(), "context canceled"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server, err := queue.StartEmbedded(c.ctx, queue.EmbeddedConfig{Dir: c.dir})
			if err == nil {
				server.Stop()
				t.Fatal("the server started")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %q does not contain %q", err, c.want)
			}
		})
	}
}

// TestPublishersOfConnection: the batches of all campaigns share what a connection needs for them.
func TestPublishersOfConnection(t *testing.T) {
	t.Parallel()
	nc := join(t, start(t, t.TempDir()))
	must(t, queue.Setup(t.Context(), nc, queue.SetupConfig{}))
	publish := func(campaign string) int {
		q, err := queue.Open(t.Context(), nc, queue.Config{Campaign: campaign})
		must(t, err)
		must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "1"}}))
		must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "2"}}))
		return nc.NumSubscriptions()
	}
	first := publish("1")
	for _, campaign := range []string{"2", "3", "4"} {
		if n := publish(campaign); n != first {
			t.Fatalf("%d subscriptions after one campaign, %d after campaign %s", first, n, campaign)
		}
	}
}
