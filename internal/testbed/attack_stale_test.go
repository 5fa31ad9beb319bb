package testbed

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"

	"ddiff/coordinator/board"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore/item"
)

// TestAttackStaleVerb separates the server that leads the board from the two others. It answers reads for some seconds more. A pause there, of
// a campaign that was paused and that others have resumed since, succeeds only if the campaign is paused afterwards.
func TestAttackStaleVerb(t *testing.T) {
	onlyBy(t, "make attacks", "DDIFF_ATTACKS")
	c := startCluster(t, Options{Directory: true, NATS: NATSOptions{Servers: 3}})
	all := newPaths(t, c)
	coordinator(t, c).Kill() // it has made the board
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
		made, _, err := board.Submit(t.Context(), boards[leader], spec, board.Order{}, time.Now())
		must(t, err)
		_, err = board.Want(t.Context(), boards[leader], made.ID, manifest.WantPause)
		must(t, err)
		all.each(leader, func(p *toxiproxy.Proxy) {
			for _, stream := range []string{"upstream", "downstream"} {
				must(t, addToxic(p, "timeout", stream, `{"timeout": 0}`))
			}
		})
		resumed := boards[(leader+1)%3]
		for {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := board.Want(ctx, resumed, made.ID, manifest.WantRun)
			cancel()
			if err == nil {
				break
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		if old, err := board.Read(ctx, boards[leader], made.ID); err == nil && old.Wanted == manifest.WantPause {
			stale++
		}
		_, paused := board.Want(ctx, boards[leader], made.ID, manifest.WantPause)
		cancel()
		all.each(leader, func(p *toxiproxy.Proxy) {
			for _, stream := range []string{"upstream", "downstream"} {
				must(t, p.Toxics.RemoveToxic(t.Context(), "timeout-"+stream))
			}
		})
		now, err := board.Read(t.Context(), resumed, made.ID)
		must(t, err)
		t.Logf("old answers: %d; the pause there: %v; now %s", stale, paused, now.Wanted)
		if paused == nil && now.Wanted != manifest.WantPause {
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
