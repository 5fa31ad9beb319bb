package testbed

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/storage"
)

// TestAttackStaleVerb separates the server that leads the board from the two others. It answers reads for some seconds more. A pause there, of
// a campaign that was paused and that others have resumed since, succeeds only if the campaign is paused afterwards.
func TestAttackStaleVerb(t *testing.T) {
	onlyBy(t, "make attacks", "DDIFF_ATTACKS")
	c := startCluster(t, Options{Directory: true, NATS: NATSOptions{Servers: 3}})
	all := newPaths(t, c)
	coordinator(t, c).Kill() // it has made the board
	store, err := storage.NewDir(c.Store())
	must(t, err)
	boards := make([]*queue.Board, 3)
	for i, address := range c.NATS.clients {
		nc, err := queue.Connect(t.Context(), queue.ConnectConfig{URL: "nats://" + address, Name: "stale", Role: string(RoleCoordinator), Wait: 20 * time.Second})
		must(t, err)
		t.Cleanup(nc.Close)
		boards[i], err = queue.OpenBoard(t.Context(), nc, nil)
		must(t, err)
	}
	stale := 0
	for round := range 3 {
		leader, err := c.NATS.StreamLeader(t.Context(), "KV_DDIFF_BOARD")
		must(t, err)
		spec := manifest.Default()
		spec.Name, spec.Dataset.Path, spec.Tasks = "stale-"+string(rune('a'+round)), "/data", []item.Task{{Name: tasks[0]}}
		made, _, err := recordtest.Submit(t.Context(), boards[leader], store, spec, board.Order{}, time.Now())
		must(t, err)
		suspended := board.NewWriter(boards[leader], store) // of a leader that is about to be cut off
		_, err = suspended.Change(t.Context(), made.ID, nil, board.Wants(record.WantPause))
		must(t, err)
		all.each(leader, func(p *toxiproxy.Proxy) {
			for _, stream := range []string{"upstream", "downstream"} {
				must(t, addToxic(p, "timeout", stream, `{"timeout": 0}`))
			}
		})
		resumed := boards[(leader+1)%3]
		for {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := recordtest.Want(ctx, resumed, store, made.ID, record.WantRun)
			cancel()
			if err == nil {
				break
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		if old, err := board.Read(ctx, boards[leader], made.ID); err == nil && old.Wanted == record.WantPause {
			stale++
		}
		_, paused := suspended.Change(ctx, made.ID, nil, board.Wants(record.WantPause))
		cancel()
		all.each(leader, func(p *toxiproxy.Proxy) {
			for _, stream := range []string{"upstream", "downstream"} {
				must(t, p.Toxics.RemoveToxic(t.Context(), "timeout-"+stream))
			}
		})
		now, err := board.Load(t.Context(), store, made.ID)
		must(t, err)
		t.Logf("old answers: %d; the pause there: %v; now %s", stale, paused, now.Wanted)
		if paused == nil && now.Wanted != record.WantPause {
			t.Errorf("a pause has succeeded without an effect: the campaign is to %s", now.Wanted)
		}
		if paused != nil && !errors.Is(paused, context.DeadlineExceeded) && !errors.Is(paused, queue.ErrUnavailable) {
			t.Error(paused)
		}
		for i := range boards {
			must(t, c.NATS.Ready(t.Context(), i))
		}
		time.Sleep(3 * time.Second)
	}
}
