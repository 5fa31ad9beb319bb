package manifest

// Ask is a change that a user has asked for, in the words of the user's program. The log of the leader has a line for each.
type Ask struct {
	// Number is that of Campaign.Asked after the change.
	Number int `json:"number,omitempty"`
	// Request identifies the request: X-Request-Id of the HTTP API.
	Request string `json:"request"`
	// By is the owner of an access token, or the account USER@MACHINE of a command that uses NATS.
	By string `json:"by"`
	// Verb is what was asked for, as in "pause".
	Verb string `json:"verb"`
}

// MaxAsks is the number of the last changes that a record names.
const MaxAsks = 16

// KeyTokenPrefix + the SHA-256 of its secret is the key of an access token: Token.
const KeyTokenPrefix = "token."

// Token is what the leader reads of an access token.
type Token struct {
	ID    string `json:"id"`
	Owner string `json:"owner"`
	Role  string `json:"role"`
	// Revoked: nobody has access by it. The leader removes the record.
	Revoked bool `json:"revoked,omitempty"`
	// Ask is who has created or revoked it; nil after the leader has logged that.
	Ask *Ask `json:"ask,omitempty"`
}
