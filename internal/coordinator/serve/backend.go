package serve

import (
	"context"
	"iter"
	"time"

	"ddiff/api"
	"ddiff/internal/record"
	"ddiff/internal/report/result"
)

// Backend reads campaigns, items and workers. Errors are those of package api, or of the packages below; all methods may be called
// concurrently. An unknown campaign is an error that wraps api.ErrNotFound.
type Backend interface {
	// Campaigns lists the campaigns, with archived ones if archived is set.
	Campaigns(ctx context.Context, archived bool) (api.Campaigns, error)
	// Campaign returns one campaign, also an archived one.
	Campaign(ctx context.Context, id string) (record.CampaignStatus, error)
	// Items returns a page of the items of a campaign. A wrong order or cursor wraps api.ErrInvalid.
	Items(ctx context.Context, id string, q api.ItemQuery) (api.Items, error)
	// Throughput counts the results of a campaign over time.
	Throughput(ctx context.Context, id string) (api.Throughput, error)
	// Item returns an item with its result and the list of its files.
	Item(ctx context.Context, id, item string) (api.ItemDetail, error)
	// Output returns the output of a campaign, with its files.
	Output(ctx context.Context, id string) (result.Output, error)
	// Logs returns the records of attempts, of all items if item is empty.
	Logs(ctx context.Context, id, item string) (api.Logs, error)
	Workers(ctx context.Context) (api.Workers, error)
	Cluster(ctx context.Context) (api.Cluster, error)
	// Watch yields first the newest state of every record, then one event of kind ready, and then the changes until ctx ends.
	Watch(ctx context.Context) iter.Seq2[api.Event, error]
}

// Controller asks the leader, in the name of the caller of a context, to change campaigns: it knows whose they are. Nil for finished outputs.
type Controller interface {
	// Submit submits a campaign file, YAML or JSON. It is idempotent.
	Submit(ctx context.Context, file []byte, o api.Order) (api.Submitted, error)
	// Check checks a campaign file and counts its items.
	Check(ctx context.Context, file []byte, o api.Order) (api.Checked, error)
	// Want sets the wanted state. It is idempotent.
	Want(ctx context.Context, id string, w record.Wanted) (api.Controlled, error)
	// Change changes settings of a campaign. It is idempotent.
	Change(ctx context.Context, id string, change api.Change) (api.Change, error)
	// Retry publishes items again. Requests with the same key, if it is not empty, have one effect.
	Retry(ctx context.Context, id, key string, r api.Retry) (api.Retried, error)
	// Append adds rows. Keys are as those of Retry.
	Append(ctx context.Context, id, key string, a api.Append) (api.Appended, error)
	// Delete deletes a campaign that has ended; dry: it says what it would delete. After an interruption it goes on.
	Delete(ctx context.Context, id string, results, dry bool) (api.Deleted, error)
}

// Tokens has the access tokens.
type Tokens interface {
	// Token returns the token with a secret, or an error that wraps api.ErrNoToken.
	Token(ctx context.Context, secret string) (api.Token, error)
	Tokens(ctx context.Context) (api.Tokens, error)
	// CreateToken returns a new token with its secret, which ends after some days; 0 for [api.TokenDays].
	CreateToken(ctx context.Context, owner string, role api.Role, days int) (api.Token, error)
	// RevokeToken removes the token with an id.
	RevokeToken(ctx context.Context, id string) error
	// KeepSession stores the data of a session, which has a key that begins with the id of its token, for a time. A token has up to [MaxSessions].
	KeepSession(ctx context.Context, key string, data []byte, age time.Duration) error
	// Session returns the data of a session, or an error that wraps api.ErrNoToken.
	Session(ctx context.Context, key string) ([]byte, error)
	// EndSession removes a session. It is idempotent.
	EndSession(ctx context.Context, key string) error
}
