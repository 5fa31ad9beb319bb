package board

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"ddiff/api"
	"ddiff/internal/failure"
	"ddiff/internal/queue"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// Verb is what a person asks of the leader. Verbs with one key have one effect.
type Verb struct {
	Key string `json:"key"`
	// Kind is a record.Wanted or one of the constants below.
	Kind     string `json:"kind"`
	Campaign string `json:"campaign,omitempty"`
	By       Caller `json:"by"`
	// Body depends on the kind: a Submission, a manifest.Budget, a Command, a Deletion, a Token or the id of one.
	Body json.RawMessage `json:"body,omitempty"`
}

// The kinds of verbs beside those of [record.Wanted].
const (
	VerbSubmit      = "submit"
	VerbChange      = "change"
	VerbDelete      = "delete"
	VerbCreateToken = "create token"
	VerbRevokeToken = "revoke token"
	VerbRetry       = "retry"
	VerbReconcile   = "reconcile"
	VerbAppend      = "append"
)

// Caller is who asks, as the coordinator knows that the person has reached.
type Caller struct {
	Owner string   `json:"owner,omitempty"`
	Role  api.Role `json:"role"`
	// Name is the owner, or the id of a token without one. Request is the X-Request-Id of the HTTP API.
	Name    string `json:"name,omitempty"`
	Request string `json:"request,omitempty"`
}

// Submission is the body of a submission. The leader sets the owner of the order.
type Submission struct {
	Spec  *manifest.Spec `json:"spec"`
	Order Order          `json:"order"`
}

// Command is the body of a verb that the campaign's runner executes.
type Command struct {
	// Outcomes are the final states that a retry resets: failed, dead.
	Outcomes []item.Outcome `json:"outcomes,omitempty"`
	// Where restricts a retry to items whose reason contains this text. Empty: all.
	Where string `json:"where,omitempty"`
	// Items restricts a retry to the identities that begin with one of these. Empty: all.
	Items []string `json:"items,omitempty"`
	// Path is the dataset of appended rows. Empty: new rows of the campaign's own.
	Path string `json:"path,omitempty"`
}

// Deletion is the body of a deletion.
type Deletion struct {
	Results bool `json:"results,omitempty"`
	Dry     bool `json:"dry,omitempty"`
}

// Answer is what the leader answers: a problem, or the body.
type Answer struct {
	Problem *api.Error      `json:"problem,omitempty"`
	Body    json.RawMessage `json:"body,omitempty"`
}

// ErrNoLeader: no coordinator leads, or the leader does not answer.
var ErrNoLeader = failure.New(failure.Server, "no coordinator leads")

// noLeader is its remedy.
const noLeader = "; start one: ddiff coordinator"

type callerKey struct{}

// As returns a copy of ctx in whose name verbs are sent.
func As(ctx context.Context, by Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, by)
}

// NewKey returns the key of a verb, or the id of a request.
func NewKey() string { return rand.Text()[:16] }

// Do sends a verb to the leader, in the name of the caller of ctx, and reads its answer into out. It is repeated until a leader, perhaps the next
// one, has answered. The errors are ErrNoLeader and those of package api.
func Do(ctx context.Context, b *queue.Board, v Verb, body, out any) error {
	v.Key = cmp.Or(v.Key, NewKey())
	v.By, _ = ctx.Value(callerKey{}).(Caller)
	var err error
	if body != nil {
		v.Body, err = json.Marshal(body)
	}
	var data []byte
	if err == nil {
		data, err = json.Marshal(v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", v.Kind, err)
	}
	if _, _, err := b.Get(ctx, queue.KeyLeader); errors.Is(err, queue.ErrNoRecord) {
		return fmt.Errorf("%w%s", ErrNoLeader, noLeader)
	} else if err != nil {
		return err
	}
	data, err = b.Request(ctx, data)
	if errors.Is(err, queue.ErrUnavailable) {
		return fmt.Errorf("%w: %w%s", ErrNoLeader, err, noLeader)
	}
	var answer Answer
	if err == nil {
		err = json.Unmarshal(data, &answer)
	}
	switch {
	case err != nil:
		return err
	case answer.Problem != nil:
		return answer.Problem
	case out == nil:
		return nil
	}
	return json.Unmarshal(answer.Body, out)
}

// The store has each access token by the SHA-256 of its secret, and each that was revoked, for ever. The board is their cache.
const (
	TokenFolder   = "coordinators/tokens/"
	RevokedFolder = "coordinators/revoked/"
)

// Token is the body of the creation of a token, and its record. It has no secret.
type Token struct {
	api.Token
	// SHA256 is that of the secret, in hexadecimal digits.
	SHA256 string `json:"sha256"`
}
