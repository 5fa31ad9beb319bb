package api

import (
	"encoding/json"
	"time"

	"ddiff/manifest"
)

// Workers are the last heartbeats of the workers.
type Workers struct {
	Workers []manifest.Beat `json:"workers"`
	Skipped []string        `json:"skipped,omitempty"`
}

// Cluster describes the fleet beside its workers.
type Cluster struct {
	// Answered is the coordinator that answers, Version its version.
	Answered string `json:"answered"`
	Version  string `json:"version"`
	// Leader is nil while no coordinator leads.
	Leader       *Leader                    `json:"leader,omitempty"`
	Coordinators []manifest.CoordinatorBeat `json:"coordinators"`
	Store        string                     `json:"store,omitempty" doc:"Address of the store"`
	NATS         string                     `json:"nats,omitempty" doc:"Server to which the answering coordinator is connected"`
	Streams      []Stream                   `json:"streams"`
	Queues       []Queue                    `json:"queues"`
}

// Leader is the leading coordinator.
type Leader struct {
	Name  string    `json:"name"`
	Since time.Time `json:"since"`
}

// Stream is the size of a stream of the queue; a limit of 0 or below is none.
type Stream struct {
	Name        string `json:"name"`
	Messages    uint64 `json:"messages"`
	Bytes       uint64 `json:"bytes"`
	MaxMessages int64  `json:"max_messages"`
	MaxBytes    int64  `json:"max_bytes"`
}

// Queue is the waiting work of a campaign.
type Queue struct {
	Campaign string            `json:"campaign"`
	Priority manifest.Priority `json:"priority"`
	// Waiting items were never leased, InFlight are leased or wait for their next attempt.
	Waiting  uint64 `json:"waiting"`
	InFlight uint64 `json:"in_flight"`
}

// Event is a change of a record of the cluster.
type Event struct {
	// ID increases with every change, on all coordinators alike.
	ID uint64 `json:"-"`
	// Kind is one of the Event constants, Key the campaign, or the worker as a token: bytes but letters, digits, - and _ are = with two digits.
	Kind string `json:"kind"`
	Key  string `json:"key"`
	// Data is the new record; empty if it was removed.
	Data json.RawMessage `json:"data,omitempty"`
}

// The kinds of events.
const (
	EventCampaign = "campaign" // a record of a campaign has changed
	EventStatus   = "status"   // counts or phase of a campaign have changed
	EventWorker   = "worker"   // a worker has sent its heartbeat
	EventLeader   = "leader"   // another coordinator leads
	EventReady    = "ready"    // the stream has begun; its id is the newest one
)

// Me is the caller.
type Me struct {
	Owner string `json:"owner,omitempty"`
	Role  Role   `json:"role"`
	// Open: the server requires no tokens. Secure: the connection is encrypted.
	Open bool `json:"open"`
	// Login: GET /session/login signs a browser in by an identity provider.
	Login bool `json:"login,omitempty"`
	// Backend is cluster, or output for finished outputs, which have no workers and cannot be changed.
	Backend string `json:"backend" enum:"cluster,output"`
}

// Role is what a token permits; a role includes those below it.
type Role string

// The roles.
const (
	Viewer    Role = "viewer"    // read everything
	Submitter Role = "submitter" // submit campaigns, and change its owner's
	Admin     Role = "admin"     // change all campaigns and the tokens
)

// Roles lists the roles, the least first.
func Roles() []Role { return []Role{Viewer, Submitter, Admin} }

// Token describes an access token. The secret itself is shown once and not stored.
type Token struct {
	// ID is the beginning of the SHA-256 of the secret.
	ID      string    `json:"id"`
	Owner   string    `json:"owner"`
	Role    Role      `json:"role"`
	Created time.Time `json:"created"`
	// Secret is set in the answer to its creation only.
	Secret string `json:"token,omitempty"`
}

// Tokens is the list of tokens.
type Tokens struct {
	Tokens []Token `json:"tokens"`
}
