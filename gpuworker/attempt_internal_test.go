package gpuworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"ddiff/internal/gpuworker/guard"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/restore/job"
	"ddiff/restore/item"
	"ddiff/storage"
	"ddiff/telemetry"
)

// ending is a lease that records the calls which end it.
type ending struct {
	marks  queue.Marks
	last   bool
	lost   string // the call that fails
	events int    // of which the stream remembers the id
	calls  []string
}

func (e *ending) record(call string) error {
	e.calls = append(e.calls, call)
	return when(e.lost != "" && strings.HasPrefix(call, e.lost), queue.ErrUnavailable)
}

func (e *ending) Marks() queue.Marks        { return e.marks }
func (e *ending) Last() bool                { return e.last }
func (e *ending) RetryDelay() time.Duration { return 3 * time.Second }
func (e *ending) Ack(context.Context) error { return e.record("ack") }
func (e *ending) Retry(_ context.Context, d time.Duration) error {
	return e.record(fmt.Sprint("retry ", d))
}

func (e *ending) ReleaseMarked(_ context.Context, m queue.Marks) error {
	return e.record(fmt.Sprint("release ", strings.Join(m.Disputed, " "), m.Faults))
}

func (e *ending) PublishOutcome(_ context.Context, payload []byte) (bool, error) {
	var event struct {
		Outcome item.Outcome
		Failed  string
	}
	if err := json.Unmarshal(payload, &event); err != nil {
		return false, err
	}
	e.events++
	return e.events == 1, e.record(fmt.Sprint("publish ", event.Outcome, event.Failed))
}

// withdrawing is a store that records the end of the record of starts.
type withdrawing struct {
	*storage.Dir
	lease *ending
}

func (s withdrawing) Delete(ctx context.Context, key string) error {
	if strings.HasSuffix(key, ".starts") {
		s.lease.calls = append(s.lease.calls, "withdraw")
	}
	return s.Dir.Delete(ctx, key)
}

// TestAttackOrderOfCalls: each outcome makes its calls in its order: the event before the acknowledgement, the record of a start is withdrawn
// before an item returns, and after its acknowledgement. A doubt is returned once, a fault ten times and then once alone. An item is counted once.
func TestAttackOrderOfCalls(t *testing.T) {
	t.Parallel()
	q := internalQueue(t, queue.Config{})
	suspected := retryOf(t, q, leaseNew(t, q, 1)[0])
	other, file := errors.New("other"), job.SourceError{Err: storage.ErrUnavailable}
	mark := func(disputed string, faults int) queue.Marks {
		return queue.Marks{Disputed: strings.Fields(disputed), Faults: faults}
	}
	for name, tt := range map[string]struct {
		o       outcome
		marks   queue.Marks
		last    bool
		lost    string
		checked bool
		known   int // events that the stream has
		calls   string
		counted bool
	}{
		"done":                     {o: outcome{kind: done}, calls: "publish done, ack, withdraw", counted: true},
		"done, once more":          {o: outcome{kind: done}, known: 1, calls: "publish done, ack, withdraw"},
		"done, no answer":          {o: outcome{kind: done}, lost: "publish", calls: "publish done"},
		"done, no acknowledgement": {o: outcome{kind: done}, lost: "ack", calls: "publish done, ack", counted: true},
		"failed":                   {o: outcome{failed, "", job.ErrInput}, calls: "publish failed, ack, withdraw", counted: true},
		"retried":                  {o: outcome{retried, "", other}, calls: "withdraw, retry 3s"},
		"retried, last":            {o: outcome{retried, "", other}, last: true, calls: "publish dead, ack, withdraw", counted: true},
		"retried, in company":      {o: outcome{retried, "", &guard.HangError{Items: 2}}, last: true, calls: "withdraw, retry 3s"},
		"returned":                 {o: outcome{kind: returned, why: drain}, marks: mark("a", 2), last: true, calls: "withdraw, release a2"},
		"suspended":                {o: outcome{returned, suspension, errSuspended}, calls: "withdraw, release 0"},
		"refused":                  {o: outcome{returned, refusal, other}, calls: "refuse, withdraw, release 0"},
		"doubt":                    {o: outcome{returned, doubt, other}, last: true, calls: "withdraw, release tester0"},
		"doubt, second":            {o: outcome{returned, doubt, other}, marks: mark("a", 0), calls: "publish failed, ack, withdraw", counted: true},
		"doubt, check":             {o: outcome{returned, doubt, other}, marks: mark("a", 0), checked: true, calls: "publish memory, ack, withdraw"},
		"fault":                    {o: outcome{returned, fault, file}, last: true, calls: "withdraw, release 1"},
		"fault, tenth":             {o: outcome{returned, fault, file}, marks: mark("", maxFaults-1), calls: "withdraw, release 10"},
		"fault, alone":             {o: outcome{returned, fault, file}, marks: mark("", maxFaults), calls: "publish dead, ack, withdraw", counted: true},
		"fault of the store":       {o: outcome{returned, fault, storage.ErrUnavailable}, marks: mark("", maxFaults), calls: "withdraw, release 11"},
		"dropped":                  {o: outcome{dropped, "", errCancelled}, calls: "ack, withdraw"},
		"dropped, queue is gone":   {o: outcome{dropped, "", errCancelled}, lost: "ack", calls: "ack, withdraw"},
	} {
		reader := sdkmetric.NewManualReader()
		in, err := telemetry.NewInstruments(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("ddiff"))
		must(t, err)
		w, dir := workerOf(t, func(c *Config) { c.Instruments = in })
		l := &ending{marks: tt.marks, last: tt.last, lost: tt.lost, events: tt.known}
		a := Assignment{Campaign: "a", Store: withdrawing{dir, l}, Refuse: func(error) { l.calls = append(l.calls, "refuse") }}
		tk := &task{lease: suspected, assigned: newAssigned(a, 1, nil, 0), ctx: t.Context(), starts: make([]attemptStart, 1)}
		tk.Item = item.Item{ID: "a", Campaign: "a", Task: "hdr"}
		if tt.checked {
			tk.checked = &record.Checked{Failed: CheckMemory}
		}
		err = w.conclude(t.Context(), l, tk, tt.o, &item.Result{Item: tk.Item, Outcome: item.OutcomeDone})
		if got := strings.Join(l.calls, ", "); got != tt.calls || (err != nil) != (tt.lost != "" && tt.o.kind != dropped) {
			t.Errorf("%s: calls %q, want %q; %v", name, got, tt.calls, err)
		}
		n := 0.0
		for metric, value := range sums(t, reader) {
			if strings.HasPrefix(metric, "ddiff.items ") {
				n += value
			}
		}
		if (n == 1) != tt.counted || n > 1 {
			t.Errorf("%s: %g items are counted", name, n)
		}
	}
}

// TestOutcomesPage: docs/operations.md has the causes in their order, and the rows of the outcomes.
func TestOutcomesPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/operations.md")
	must(t, err)
	want := "| cause, the first that holds | outcome |\n|---|---|\n"
	for _, c := range causes {
		want += fmt.Sprintf("| %s | %#q%s |\n", c.name, c.kind, map[bool]string{true: ", " + string(c.why)}[c.why != ""])
	}
	want += "\n| outcome | the item | attempt | state | who looks again |\n|---|---|---|---|---|\n"
	all := []kind{done, failed, dead, retried, returned, dropped}
	for _, k := range all {
		r := rows[k]
		does := string(r.queue)
		if r.event {
			does += " after its event is stored"
		}
		attempt := map[move]string{ack: "–", nak: "counts", again: "does not count"}[r.queue]
		want += fmt.Sprintf("| %#q | %s | %s | %s | %s |\n", k, does, attempt, r.ledger, r.next)
	}
	if !strings.Contains(string(page), want) {
		t.Errorf("docs/operations.md lacks\n%s", want)
	}
	for k := range rows {
		if !slices.Contains(all, k) {
			t.Errorf("another outcome %s", k)
		}
	}
}
