package testbed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"ddiff/internal/queue"
	"ddiff/internal/record"
)

// connect connects to the servers in a role.
func (n *NATS) connect(ctx context.Context, role Role) (*queue.Conn, error) {
	cfg := queue.ConnectConfig{URL: n.URL(role), Name: "testbed", Role: string(role), Wait: 20 * time.Second}
	if n.Authority != nil {
		cfg.CAFile = n.Authority.File
	}
	cfg.CertFile, cfg.KeyFile = n.client.Cert, n.client.Key
	return queue.Connect(ctx, cfg)
}

// Leader returns the leading coordinator.
func (c *Cluster) Leader(ctx context.Context) (*Process, error) {
	nc, err := c.NATS.connect(ctx, RoleCoordinator)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	board, err := queue.OpenBoard(ctx, nc, nil)
	if err != nil {
		return nil, err
	}
	data, _, err := board.Get(ctx, queue.KeyLeader)
	if err != nil {
		return nil, fmt.Errorf("find the leader: %w", err)
	}
	var leader queue.Leader
	if err := json.Unmarshal(data, &leader); err != nil {
		return nil, fmt.Errorf("find the leader: %w", err)
	}
	i := slices.IndexFunc(c.Coordinators, func(p *Process) bool { return p.Name == leader.Name })
	if i < 0 {
		return nil, fmt.Errorf("find the leader: %q is not a coordinator of this cluster", leader.Name)
	}
	return c.Coordinators[i], nil
}

// Status returns the last status of a campaign.
func (c *Cluster) Status(ctx context.Context, campaign string) (record.Status, error) {
	_, status, err := c.standing(ctx, campaign)
	return status, err
}

// Record returns the record of a campaign.
func (c *Cluster) Record(ctx context.Context, campaign string) (record.Campaign, error) {
	record, _, err := c.standing(ctx, campaign)
	return record, err
}

// standing returns the record and the last status of a campaign.
func (c *Cluster) standing(ctx context.Context, campaign string) (record.Campaign, record.Status, error) {
	out, err := c.Output(ctx, "status", "--json", campaign)
	if err != nil {
		return record.Campaign{}, record.Status{}, err
	}
	var standing struct {
		Campaign record.Campaign `json:"campaign"`
		Status   record.Status   `json:"status"`
	}
	if err := json.Unmarshal([]byte(out), &standing); err != nil {
		return record.Campaign{}, record.Status{}, fmt.Errorf("read status of campaign %s: %w", campaign, err)
	}
	return standing.Campaign, standing.Status, nil
}

// StreamWork is the stream of pending items.
const StreamWork = "DDIFF_WORK"

// DeleteStream deletes a stream with its messages.
func (n *NATS) DeleteStream(ctx context.Context, stream string) error {
	nc, err := n.connect(ctx, RoleAdmin)
	if err != nil {
		return err
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	answer, err := nc.RequestWithContext(ctx, "$JS.API.STREAM.DELETE."+stream, nil)
	if err != nil {
		return fmt.Errorf("delete stream %s: %w", stream, err)
	}
	var reply struct {
		Success bool `json:"success"`
		Error   struct {
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &reply); err != nil {
		return fmt.Errorf("delete stream %s: %w", stream, err)
	}
	if !reply.Success {
		return fmt.Errorf("delete stream %s: %w", stream, errors.New(reply.Error.Description))
	}
	return nil
}
