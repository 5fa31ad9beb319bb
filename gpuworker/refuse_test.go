package gpuworker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"ddiff/gpuworker"
	"ddiff/internal/gpuworker/fleet"
	"ddiff/internal/gpuworker/workertest"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/restore/item"
)

// publishPayload publishes one item with its payload.
func publishPayload(t *testing.T, q *queue.Queue, class, id string, payload []byte) {
	t.Helper()
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: class, ID: id, Payload: payload}}))
}

// countedLeases is a dispatcher that counts the leases of each campaign. It is read after the end of the worker.
type countedLeases struct {
	*fleet.Fleet
	leased map[string]int
}

func (c *countedLeases) Next(ctx context.Context, wait time.Duration) (gpuworker.Assignment, []*queue.Lease, error) {
	a, leases, err := c.Fleet.Next(ctx, wait)
	c.leased[a.Campaign] += len(leases)
	return a, leases, err
}

// A worker leaves items that a newer version made to other workers: it releases them once, without an attempt, names the
// reason in its heartbeat and its log, and processes the other campaigns.
func TestItemsOfNewerVersionAreRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.prior(workertest.Share(t, 0.1))
	base := itemsFor(t, p, 1)[0]
	encode := func(it item.Item) []byte {
		t.Helper()
		data, err := json.Marshal(it)
		must(t, err)
		return record.EncodeItem(data)
	}
	solver := func(change string) func(*item.Item) {
		return func(it *item.Item) {
			it.Solver = append(bytes.TrimSuffix(bytes.Clone(it.Solver), []byte("}")), change...)
		}
	}
	payloads := map[string]struct {
		item    item.Item
		replace [2]string // in the payload
		reason  string
	}{
		"schema":    {base, [2]string{`"schema":1`, `"schema":2`}, "schema is 2"},
		"form":      {base, [2]string{`"schema":1,"id":"`, `"schema":2,"id":7,"was":"`}, "schema is 2"}, // a field has another type
		"setting":   {base, [2]string{`"id":"` + base.ID[:4], `"gain":3,"id":"0000`}, "a setting that this version does not know"},
		"parameter": {with(t, base, solver(`,"momentum":0.5}`)), [2]string{}, "solver setting"},
		"method": {with(t, base, func(it *item.Item) {
			it.Method, it.Solver = "flow", []byte(`{"method":"flow","steps":8}`)
		}), [2]string{}, `"flow"`},
		"task":           {with(t, base, func(it *item.Item) { it.Task = "painting" }), [2]string{}, "painting"},
		"task-parameter": {with(t, base, func(it *item.Item) { it.Params = map[string]float64{"depth": 1} }), [2]string{}, "depth"},
	}
	queues := map[string]*queue.Queue{}
	for id, k := range payloads {
		q := c.open(id, queue.Config{MaxAttempts: 1})
		data := bytes.Replace(encode(k.item), []byte(k.replace[0]), []byte(k.replace[1]), 1)
		item := k.item.ID
		if id == "setting" {
			item = "0000" + item[4:]
		}
		publishPayload(t, q, "class", item, data)
		c.submit(id, func(r *record.Campaign) { r.Prior = p })
		queues[id] = q
	}
	check := c.open("check", queue.Config{})
	preflight(t, check, "check", payloads["task"].item)
	c.submit("check", func(r *record.Campaign) { r.Prior, r.Phase = p, record.PhasePreflight })
	queues["check"] = check
	c.submit("record", func(r *record.Campaign) { r.Schema = record.Schema + 1 })

	// Optional fields, and items without a schema, of earlier versions, are processed.
	known := c.open("known", queue.Config{})
	publishPayload(t, known, "class", base.ID, bytes.Replace(encode(base), []byte(`"name"`), []byte(`"note":{"by":"me"},"name"`), 1))
	publish(t, known, itemsFor(t, p, 2)[1])
	c.submit("known", func(r *record.Campaign) { r.Prior = p })

	cfg := c.worker(1)
	work := &countedLeases{Fleet: cfg.Work.(*fleet.Fleet), leased: map[string]int{}}
	cfg.Work = work
	w, running := begin(t, cfg)
	for name, r := range results(t, known, 2) {
		if r.Outcome != item.OutcomeDone {
			t.Errorf("item %s is %s: %s", name, r.Outcome, r.Reason)
		}
	}
	waitUntil(t, "a campaign is not refused", func() bool { return len(w.Beat().Refused) == len(queues)+1 })
	refused := w.Beat().Refused
	if !strings.Contains(refused["record"], "newer") {
		t.Errorf("the heartbeat says %q of a record of a newer version", refused["record"])
	}
	for id, k := range payloads {
		if !strings.Contains(refused[id], k.reason) || !strings.Contains(refused[id], "update ddiff on this worker") {
			t.Errorf("campaign %s is refused with %q, want %q", id, refused[id], k.reason)
		}
	}
	running.stop(t)
	for id, q := range queues {
		if n := strings.Count(c.log.String(), fmt.Sprintf("cannot process campaign\" campaign=%s ", id)); n != 1 {
			t.Errorf("campaign %s is logged %d times, want once:\n%s", id, n, c.log)
		}
		waitUntil(t, "no item is left", func() bool { // the consumer learns of the released copy later than the stream
			pending, _, err := q.Depth(t.Context())
			must(t, err)
			return pending > 0
		})
		leases, err := q.Lease(t.Context(), 2, 0)
		must(t, err)
		if len(leases) != 1 || leases[0].Attempt() != 1 || work.leased[id] != 1 {
			t.Errorf("campaign %s has %d items, want 1 at attempt 1; the worker leased %d, want 1", id, len(leases), work.leased[id])
		}
	}
}
