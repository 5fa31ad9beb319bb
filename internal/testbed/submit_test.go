package testbed

import (
	"context"
	"errors"
	"time"

	"ddiff/api"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/queue"
	"ddiff/internal/retry"
	"ddiff/manifest"
)

// submitVerb submits a campaign through the leader, as a coordinator's HTTP API does.
func submitVerb(ctx context.Context, b *queue.Board, spec *manifest.Spec) (id string, err error) {
	var made api.Submitted
	for ctx.Err() == nil { // until a leader is elected
		err = board.Do(recordtest.Administrator(ctx), b, board.Verb{Kind: board.VerbSubmit}, board.Submission{Spec: spec}, &made)
		if !errors.Is(err, board.ErrNoLeader) {
			break
		}
		_ = retry.Sleep(ctx, 100*time.Millisecond) // the loop checks ctx
	}
	return made.ID, err
}
