// Package notify sends signed webhooks when a campaign reaches a state that a person waits for: paused, finished, cancelled or
// rejected.
//
// A [Notifier] belongs to the leading coordinator and follows the board. A message has the form of the Standard Webhooks
// specification: a JSON body, and the headers webhook-id, webhook-timestamp and webhook-signature (HMAC-SHA256 of
// "id.timestamp.body"). It is sent at least once: the store has an object for each message that was sent or given up, written
// after the last attempt, and the next leader sends what has none. If states follow each other faster than the receiver
// answers, only the newest is sent. The id is that of the change, so that a receiver can drop copies.
package notify
