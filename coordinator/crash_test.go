package coordinator_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"ddiff/coordinator"
	"ddiff/internal/queue"
	"ddiff/manifest"
	"ddiff/storage"
)

// fault is the fault at one write of a process.
type fault int

const (
	noFault     fault = iota
	crashBefore       // the process dies, and the write does not happen
	crashAfter        // the write happens, and the process dies before it sees the answer
	failWrite         // the write to the store fails; other writes succeed
)

// errCrashed is the error of every operation of a dead process, errFault that of a failed write.
var (
	errCrashed = errors.New("the process is dead")
	errFault   = errors.New("injected fault")
)

// process is a leading coordinator whose writes to the store, the board and the queue may be cut at any point, as by
// SIGKILL.
type process struct {
	store  *storage.Dir
	inject func(write string) fault // called before each write, one at a time

	mu      sync.Mutex
	dead    bool
	crashed chan struct{} // closed at the crash
	stop    func()        // ends the process and waits for its goroutines
}

// leadUntilCrash starts a coordinator with short intervals.
func (tc *testCluster) leadUntilCrash(inject func(write string) fault) *process {
	tc.t.Helper()
	p := &process{store: tc.store, inject: inject, crashed: make(chan struct{})}
	nc, err := tc.server.ConnectThrough(func(c net.Conn) net.Conn { return &cutConn{Conn: c, p: p} })
	must(tc.t, err)
	kv, err := queue.OpenBoard(tc.t.Context(), nc, nil)
	must(tc.t, err)
	service, err := coordinator.New(coordinator.Config{
		Board: kv, Store: p, StoreAddress: "memory", Sources: manifest.Files{}, Sweep: tc.sweep, Rows: tc.rows, Window: tc.window,
		Open: func(ctx context.Context, campaign string, attempts int) (*queue.Queue, error) {
			return queue.Open(ctx, nc, queueConfig(campaign, attempts))
		},
		AckWait: 300 * time.Millisecond, Tick: 10 * time.Millisecond, Stall: 150 * time.Millisecond, Restart: 10 * time.Millisecond,
		Logger: tc.log, Tracer: noop.NewTracerProvider().Tracer(""),
	})
	must(tc.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := service.Lead(ctx); err != nil && ctx.Err() == nil && !p.isDead() {
			tc.t.Errorf("coordinator ended: %v", err)
		}
	}()
	go func() {
		select {
		case <-p.crashed:
			cancel()
		case <-ctx.Done():
		}
	}()
	p.stop = sync.OnceFunc(func() {
		cancel()
		<-ended
		nc.Close()
	})
	tc.t.Cleanup(p.stop)
	return p
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// write performs a write unless the process is dead or dies before it.
func (p *process) write(name string, act func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return errCrashed
	}
	f := p.inject(name)
	if f == failWrite {
		return errFault
	}
	if f == crashBefore || f == crashAfter {
		p.dead = true
		defer close(p.crashed)
	}
	if f == crashBefore {
		return errCrashed
	}
	if err := act(); err != nil || f == noFault {
		return err
	}
	return errCrashed
}

// read performs a read unless the process is dead.
func read[T any](p *process, act func() (T, error)) (T, error) {
	if p.isDead() {
		var none T
		return none, errCrashed
	}
	return act()
}

// nameOf names a key for a fault: its last folder, or its file in a folder of the campaign.
func nameOf(key string) string {
	for _, part := range []string{"rounds", "shards", "state", "campaign.json"} {
		if strings.Contains(key, part) {
			return "store " + part
		}
	}
	return "store report"
}

func (p *process) Put(ctx context.Context, key string, data []byte) error {
	return p.write(nameOf(key), func() error { return p.store.Put(ctx, key, data) })
}

func (p *process) Create(ctx context.Context, key string, data []byte) error {
	return p.write(nameOf(key), func() error { return p.store.Create(ctx, key, data) })
}

func (p *process) Delete(ctx context.Context, key string) error {
	return p.write(nameOf(key), func() error { return p.store.Delete(ctx, key) })
}

func (p *process) Get(ctx context.Context, key string) ([]byte, error) {
	return read(p, func() ([]byte, error) { return p.store.Get(ctx, key) })
}

func (p *process) Stat(ctx context.Context, key string) (storage.Info, error) {
	return read(p, func() (storage.Info, error) { return p.store.Stat(ctx, key) })
}

func (p *process) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		if p.isDead() {
			yield(storage.Info{}, errCrashed)
			return
		}
		p.store.List(ctx, prefix)(yield)
	}
}

// cutConn is the connection of a process to the queue. It reports writes of interest to the process and sends nothing
// after a crash.
type cutConn struct {
	net.Conn
	p       *process
	pending []byte // the beginning of a frame
}

// writes maps prefixes of subjects to the names of writes.
var writes = []struct{ prefix, name string }{
	{"$KV.DDIFF_BOARD.campaign.", "record"},
	{"$KV.DDIFF_BOARD.status.", "status"},
	{"ddiff.work.", "item"},
	{"$JS.API.CONSUMER.CREATE.DDIFF_WORK.", "consumer"},
	{"$JS.API.CONSUMER.DELETE.DDIFF_WORK.", "drop consumer"},
	{"$JS.API.CONSUMER.PAUSE.DDIFF_WORK.", "pause"},
	{"$JS.API.STREAM.PURGE.DDIFF_WORK", "drop work"},
}

// Write sends whole frames, one at a time.
func (c *cutConn) Write(data []byte) (int, error) {
	c.pending = append(c.pending, data...)
	for {
		n, subject := frame(c.pending)
		if n == 0 {
			return len(data), nil
		}
		send := func() error {
			_, err := c.Conn.Write(c.pending[:n])
			return err
		}
		err := errCrashed
		if name := nameOfSubject(subject); name != "" {
			err = c.p.write(name, send)
		} else if !c.p.isDead() {
			err = send()
		}
		if errors.Is(err, errFault) {
			err = send()
		}
		if err != nil {
			return 0, errors.Join(err, c.Close())
		}
		c.pending = c.pending[n:]
	}
}

func nameOfSubject(subject string) string {
	for _, w := range writes {
		if strings.HasPrefix(subject, w.prefix) {
			return w.name
		}
	}
	return ""
}

// frame returns the length of the first complete frame of the client protocol, or 0, and the subject of a message.
func frame(data []byte) (n int, subject string) {
	line, _, complete := bytes.Cut(data, []byte("\r\n"))
	if !complete {
		return 0, ""
	}
	n = len(line) + 2
	fields := strings.Fields(string(line))
	if len(fields) < 3 || (fields[0] != "PUB" && fields[0] != "HPUB") {
		return n, ""
	}
	size, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil {
		panic(fmt.Sprintf("unexpected frame %q", line))
	}
	if n += size + 2; n > len(data) {
		return 0, ""
	}
	return n, fields[1]
}
