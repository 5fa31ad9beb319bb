package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"ddiff/internal/queue"
)

// shortTerm is short, and long enough for a busy machine.
const shortTerm = 2 * time.Second

// candidate takes part in an election on its own connection.
type candidate struct {
	nc      *nats.Conn
	leads   chan context.Context
	release chan error // what lead returns
	stop    context.CancelFunc
	ended   chan error
}

// run runs a candidate, with a clock or the system's.
func run(t *testing.T, s *server.Server, name string, clock ...func() time.Time) *candidate {
	t.Helper()
	c := &candidate{nc: dial(t, s), leads: make(chan context.Context), release: make(chan error, 1), ended: make(chan error, 1)}
	cfg := queue.ElectionConfig{Name: name, TTL: shortTerm}
	if len(clock) > 0 {
		cfg.Now = clock[0]
	}
	e, err := queue.NewElection(t.Context(), c.nc, cfg)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	c.stop = cancel
	go func() {
		c.ended <- e.Run(ctx, func(ctx context.Context) error {
			select {
			case c.leads <- ctx:
			case <-ctx.Done():
				return ctx.Err()
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case err := <-c.release:
				return err
			}
		})
	}()
	t.Cleanup(cancel)
	return c
}

// leader waits until the candidate leads.
func (c *candidate) leader(t *testing.T, within time.Duration) context.Context {
	t.Helper()
	select {
	case ctx := <-c.leads:
		return ctx
	case <-time.After(within):
		t.Fatalf("no lead within %v", within)
		return nil
	}
}

// end waits for the end of the candidate and returns its error.
func (c *candidate) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-c.ended:
		return err
	case <-time.After(patience):
		t.Fatalf("the candidate has not ended within %v", patience)
		return nil
	}
}

// waits checks that the candidate does not lead within d.
func (c *candidate) waits(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-c.leads:
		t.Fatal("two leaders at once")
	case <-time.After(d):
	}
}

func electionServer(t *testing.T) (*server.Server, *server.Options) {
	t.Helper()
	o := jetStream(t)
	s := serve(t, o)
	must(t, queue.Setup(t.Context(), dial(t, s), queue.SetupConfig{}))
	return s, o
}

func TestElection(t *testing.T) {
	t.Parallel()
	s, _ := electionServer(t)
	// The clock of a stands still: a is not late for a renewal on a slow machine, but b takes over if none comes for its term.
	begin := time.Now()
	still := func() time.Time { return begin }
	a := run(t, s, "a", still)
	ctx := a.leader(t, patience)
	var stopped atomic.Pointer[time.Time]
	b := run(t, s, "b", func() time.Time {
		if at := stopped.Load(); at != nil {
			return *at
		}
		return time.Now()
	})
	b.waits(t, 3*shortTerm/2) // renewals prevent a takeover
	if ctx.Err() != nil {
		t.Fatal("the leader stopped without a reason")
	}
	board := openBoard(t, dial(t, s))
	data, _, err := board.Get(t.Context(), queue.KeyLeader)
	must(t, err)
	var l queue.Leader
	must(t, json.Unmarshal(data, &l))
	if l.Name != "a" || time.Since(l.Since) > time.Minute {
		t.Errorf("leader record %s", data)
	}
	// A leader that resigns is replaced at once: no term ends by a clock that stands still.
	now := time.Now()
	stopped.Store(&now)
	a.stop()
	b.leader(t, patience)
	must(t, a.end(t))
	// Run returns the error of lead.
	failure := errors.New("the leader failed")
	b.release <- failure
	mustBe(t, b.end(t), failure)
	c := run(t, s, "c", still)
	c.leader(t, patience)
	c.release <- nil
	must(t, c.end(t))
}

// TestElectionReplacesDeadLeader closes the leader's connection: the leader must stop before the next leader starts.
func TestElectionReplacesDeadLeader(t *testing.T) {
	t.Parallel()
	s, _ := electionServer(t)
	a := run(t, s, "a")
	led := a.leader(t, patience)
	b := run(t, s, "b")
	begin := time.Now()
	a.nc.Close()
	b.leader(t, patience)
	if took := time.Since(begin); took < shortTerm/3 {
		t.Errorf("the next leader started after only %v", took)
	}
	if led.Err() == nil {
		t.Error("the first leader still leads beside the second")
	}
	mustBe(t, a.end(t), queue.ErrClosed)
}

// TestElectionSurvivesServerOutage stops the server, and sets the clock of both candidates: it stands still, so that no machine is too slow, until the
// leader has to stop, two thirds of a term after its last renewal.
func TestElectionSurvivesServerOutage(t *testing.T) {
	t.Parallel()
	s, o := electionServer(t)
	begin := time.Now()
	var passed atomic.Int64
	clock := func() time.Time { return begin.Add(time.Duration(passed.Load())) }
	first, second := run(t, s, "a", clock), run(t, s, "b", clock)
	var led context.Context
	select {
	case led = <-first.leads:
	case led = <-second.leads:
		first, second = second, first
	}
	o.Port = s.Addr().(*net.TCPAddr).Port
	stopServer(s)
	passed.Store(int64(2 * shortTerm / 3))
	select {
	case <-led.Done():
	case <-time.After(patience):
		t.Fatal("the leader has not stopped at two thirds of its term")
	}
	serve(t, o)
	first.leader(t, patience) // the record is its own, and the other one waits for a term
	second.waits(t, shortTerm)
}

// TestElectionStepDown steps down: another process leads, and the first one stands again only while it is fit.
func TestElectionStepDown(t *testing.T) {
	t.Parallel()
	s, _ := electionServer(t)
	var fit atomic.Bool
	terms := make(chan int)
	e, err := queue.NewElection(t.Context(), dial(t, s), queue.ElectionConfig{TTL: shortTerm, Fit: fit.Load})
	must(t, err)
	fit.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		term := 0
		ended <- e.Run(ctx, func(context.Context) error {
			term++
			fit.Store(false)
			terms <- term
			return queue.ErrStepDown
		})
	}()
	if term := <-terms; term != 1 {
		t.Fatalf("term %d", term)
	}
	other := run(t, s, "other")
	other.leader(t, patience)
	other.stop()
	must(t, other.end(t))
	select {
	case <-terms:
		t.Fatal("a process leads that is not fit")
	case <-time.After(2 * shortTerm):
	}
	fit.Store(true)
	if term := <-terms; term != 2 {
		t.Errorf("term %d, want 2", term)
	}
	cancel()
	must(t, <-ended)
}

// TestElectionHasOneLeader has many candidates lead for short terms.
func TestElectionHasOneLeader(t *testing.T) {
	t.Parallel()
	s, _ := electionServer(t)
	var mu sync.Mutex
	leaders, terms := 0, 0
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	var wg sync.WaitGroup
	for range 6 {
		nc := dial(t, s)
		wg.Go(func() {
			for range 3 {
				// No machine stalls for two thirds of this term while a process leads.
				e, err := queue.NewElection(t.Context(), nc, queue.ElectionConfig{TTL: 3 * shortTerm})
				if err != nil {
					t.Errorf("NewElection: %v", err)
					return
				}
				err = e.Run(ctx, func(context.Context) error {
					mu.Lock()
					leaders++
					terms++
					if leaders != 1 {
						t.Errorf("%d leaders at once", leaders)
					}
					mu.Unlock()
					time.Sleep(5 * time.Millisecond) // the term
					mu.Lock()
					leaders--
					mu.Unlock()
					return nil
				})
				if err != nil {
					t.Errorf("Run: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if terms != 18 {
		t.Errorf("%d terms, want 18", terms)
	}
}

// TestElectionResigns: a leader whose work ends removes its record. Without a server it tries for a third of the term.
func TestElectionResigns(t *testing.T) {
	t.Parallel()
	const complaint, term = "could not resign", 2400 * time.Millisecond
	s, _ := electionServer(t)
	nc := dial(t, s)
	board := openBoard(t, nc)
	lead := func(end func()) string {
		var log textLog
		e, err := queue.NewElection(t.Context(), nc, queue.ElectionConfig{TTL: term, Logger: log.logger()})
		must(t, err)
		must(t, e.Run(t.Context(), func(context.Context) error { end(); return nil }))
		return log.String()
	}
	if text := lead(func() {}); strings.Contains(text, complaint) {
		t.Errorf("a leader that resigns logs\n%s", text)
	}
	_, _, err := board.Get(t.Context(), queue.KeyLeader)
	mustBe(t, err, queue.ErrNoRecord)
	text := lead(func() { stopServer(s) })
	if !strings.Contains(text, complaint) || !strings.Contains(text, context.DeadlineExceeded.Error()) || strings.Contains(text, queue.ErrUnavailable.Error()) {
		t.Errorf("a leader without a server logs\n%s", text)
	}
}

// TestElectionWaitsForTerm sets the clock of a process that waits for the lead: it leads when it has seen the same record for
// exactly TTL.
func TestElectionWaitsForTerm(t *testing.T) {
	t.Parallel()
	const term = time.Second
	s, _ := electionServer(t)
	nc := dial(t, s)
	board := openBoard(t, nc)
	must(t, board.Put(t.Context(), queue.KeyLeader, []byte(`{"name":"b","id":"another"}`)))
	ctx, cancel := context.WithCancel(t.Context())
	clock := make(chan time.Duration)
	e, err := queue.NewElection(t.Context(), nc, queue.ElectionConfig{TTL: term, Now: func() time.Time {
		select {
		case d := <-clock:
			return time.Unix(1000, 0).Add(d)
		case <-ctx.Done():
			return time.Unix(1000, 0)
		}
	}})
	must(t, err)
	led, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- e.Run(ctx, func(context.Context) error { close(led); return nil }) }()
	for _, d := range []time.Duration{0, term - 1, term} { // three looks at the record
		clock <- d
	}
	select {
	case <-led:
		t.Error("the process leads before the end of the term")
	case clock <- term: // the begin of the new term
		select {
		case <-led:
		case clock <- term:
			t.Error("the process does not lead at the end of the term")
		}
	}
	if !t.Failed() {
		must(t, <-ended)
	}
	cancel()
}

// TestElectionConfig: a term has at least 100 ms.
func TestElectionConfig(t *testing.T) {
	t.Parallel()
	s, _ := electionServer(t)
	nc := dial(t, s)
	for name, c := range map[string]struct {
		cfg  queue.ElectionConfig
		want error
	}{
		"shortest term": {queue.ElectionConfig{TTL: 100 * time.Millisecond}, nil},
		"shorter term":  {queue.ElectionConfig{TTL: 100*time.Millisecond - 1}, queue.ErrConfig},
		"no term":       {queue.ElectionConfig{}, nil},
	} {
		if _, err := queue.NewElection(t.Context(), nc, c.cfg); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
