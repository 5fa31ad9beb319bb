// Package ledger counts the items of a campaign: [Ledger] has the state of every item in the leader's memory, in about 50
// bytes per identity, and [Parts] stores the outcomes for the next leader.
//
// The package owns the objects below campaigns/ID/ledger/ in the store and their format. It reads no window and no result
// stream: the coordinator enters their items and outcomes. A new final state of items is a [State], whose number is part
// of the format.
package ledger
