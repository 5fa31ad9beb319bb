// Package notify sends signed webhooks when a campaign reaches a state that a person waits for: paused, finished, cancelled or
// rejected.
//
// A [Notifier] belongs to the leading coordinator and follows the board. A message has the form of the Standard Webhooks
// specification: a JSON body, and the headers webhook-id, webhook-timestamp and webhook-signature (HMAC-SHA256 of
// "id.timestamp.body"). It is sent at least once: the store has an object for each message that was sent or given up, written
// after the last attempt, and the next leader sends what has none. If states follow each other faster than the receiver
// answers, only the newest is sent. The id is that of the change, so that a receiver can drop copies.
package notify

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"golang.org/x/sync/errgroup"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/outbound"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/retry"
	"ddiff/storage"
)

const (
	attempts    = 9 // with pauses of 1 s, doubled up to 5 minutes: about 9 minutes
	firstPause  = time.Second
	longest     = 300              // of the first pause: 5 minutes
	answerLimit = 15 * time.Second // of one attempt
	maxAnswer   = 1 << 16
	parallel    = 16 // campaigns whose messages are sent to one receiver beside each other
)

// Config describes a [Notifier]. Fields without a stated default are required.
type Config struct {
	Board *queue.Board
	Store storage.Store
	// Hosts are the servers to which messages may go, as in hooks.example.org or hooks.example.org:8443. Empty: none.
	Hosts []string
	// Secret is the key of the signatures.
	Secret []byte
	// Transport sends the requests. Default: that of the standard library.
	Transport http.RoundTripper
	// Pause is the wait before the second attempt. Default: 1 s.
	Pause time.Duration
	// Now is the clock. Default: time.Now.
	Now    func() time.Time
	Logger *slog.Logger
}

// Notifier sends the messages of all campaigns of a board.
type Notifier struct {
	cfg    Config
	client *http.Client

	mu sync.Mutex
	// newest has the campaigns whose messages are being sent, each with a newer record, or nil.
	newest map[string]*record.Campaign
}

// New returns a notifier.
func New(cfg Config) *Notifier {
	cfg.Pause = cmp.Or(cfg.Pause, firstPause)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	client := outbound.Client(cfg.Transport, maxAnswer) // a redirect could lead to a server that is not permitted
	client.Timeout = answerLimit
	return &Notifier{cfg: cfg, client: client, newest: map[string]*record.Campaign{}}
}

// Check returns an error that names the remedy unless messages may go to an address. A nil Notifier permits none.
func (n *Notifier) Check(address string) error {
	if n == nil {
		return errors.New("notify: the coordinators send no notifications; start them with --notify-host and --notify-secret, or remove the field")
	}
	u, err := url.Parse(address)
	if err != nil {
		return errors.New("notify: the address cannot be read") // it may be a secret
	}
	if n.receiver(address) != "" {
		return nil
	}
	return fmt.Errorf("notify: the coordinators send nothing to %s; permit it there: --notify-host %s", u.Host, u.Host)
}

// receiver returns the permitted server of an address, or nothing: one that does not answer delays only its own messages.
func (n *Notifier) receiver(address string) string {
	if u, err := url.Parse(address); err == nil {
		for _, host := range n.cfg.Hosts {
			if strings.EqualFold(host, u.Host) {
				return host
			}
		}
	}
	return ""
}

// notified reports whether people wait for a phase.
func notified(p record.Phase) bool { return p == record.PhasePaused || p.Ended() }

// Run sends messages until ctx ends, whose error it returns. A process that leads again calls it again.
func (n *Notifier) Run(ctx context.Context) error {
	n.mu.Lock()
	clear(n.newest) // the end of the last term has ended its senders
	n.mu.Unlock()
	group, inner := errgroup.WithContext(ctx)
	slots := map[string]chan struct{}{}
	group.Go(func() error {
		for change, err := range n.cfg.Board.Watch(inner, record.KeyCampaignPrefix) {
			if err != nil {
				return fmt.Errorf("watch campaigns: %w", err)
			}
			if change.Ready || change.Deleted {
				continue
			}
			c, err := record.DecodeCampaign(strings.TrimPrefix(change.Key, record.KeyCampaignPrefix), change.Data)
			if err != nil || c.Spec.Notify == "" || !notified(c.Phase) || !n.take(c) {
				continue
			}
			receiver := n.receiver(c.Spec.Notify)
			if slots[receiver] == nil {
				slots[receiver] = make(chan struct{}, parallel)
			}
			slot := slots[receiver]
			group.Go(func() error {
				for ; c != nil; c = n.next(c.ID) {
					select {
					case slot <- struct{}{}:
					case <-inner.Done():
						return inner.Err()
					}
					n.notify(inner, c)
					<-slot
				}
				return nil
			})
		}
		return inner.Err()
	})
	return group.Wait()
}

// take reports whether the caller is to send the messages of a campaign. Otherwise another goroutine does, and continues with c.
func (n *Notifier) take(c *record.Campaign) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, busy := n.newest[c.ID]
	n.newest[c.ID] = nil
	if busy {
		n.newest[c.ID] = c
	}
	return !busy
}

// next returns the newest record of a campaign that arrived meanwhile; nil ends the sending.
func (n *Notifier) next(id string) *record.Campaign {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.newest[id]
	if n.newest[id] = nil; c == nil {
		delete(n.newest, id)
	}
	return c
}

// Delivery is the record of a message that was sent or given up.
type Delivery struct {
	ID    string       `json:"id"`
	Phase record.Phase `json:"phase"`
	At    time.Time    `json:"at"`
	// Status is that of the last answer, 0 without one. Error is empty if the receiver took the message.
	Status int    `json:"status,omitempty"`
	Error  string `json:"error,omitempty"`
}

// notify sends the message of a campaign's phase unless it has a record, and writes the record. Without one, the next leader or
// the next change of the campaign's record sends it.
func (n *Notifier) notify(ctx context.Context, c *record.Campaign) {
	log := n.cfg.Logger.With("campaign", c.ID, "phase", c.Phase)
	for delays := retry.NewBackOff(n.cfg.Pause, longest*n.cfg.Pause); ; {
		err := n.notifyOnce(ctx, c)
		if ctx.Err() != nil || err == nil {
			return
		}
		if errors.Is(err, errGivenUp) {
			log.Error("gave up a notification", "reason", err)
			return
		}
		log.Warn("could not send a notification, will retry", "reason", err)
		if retry.Sleep(ctx, delays.NextBackOff()) != nil {
			return
		}
	}
}

// errGivenUp: the receiver has not taken a message after all attempts, or nothing may be sent to it.
var errGivenUp = errors.New("not taken")

func (n *Notifier) notifyOnce(ctx context.Context, c *record.Campaign) error {
	key := "campaigns/" + c.ID + "/notifications/" + messageID(c) + ".json"
	_, err := n.cfg.Store.Stat(ctx, key)
	if err == nil || !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	s, err := board.Status(ctx, n.cfg.Board, c.ID)
	if errors.Is(err, queue.ErrNoRecord) { // deleted or archived meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	if messageID(s.Campaign) != messageID(c) { // the newer record follows
		return nil
	}
	m, err := newMessage(s, n.cfg.Now())
	if err != nil {
		return err
	}
	d := Delivery{ID: m.id, Phase: c.Phase}
	d.Status, err = n.send(ctx, c.Spec.Notify, m)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if d.At = n.cfg.Now().UTC(); err != nil {
		d.Error = err.Error()
	}
	data, encodeErr := json.Marshal(d)
	if encodeErr != nil {
		return encodeErr
	}
	if err := n.cfg.Store.Create(ctx, key, data); err != nil && !errors.Is(err, storage.ErrExists) {
		return err
	}
	return err
}

// send posts a message, and repeats it after errors of the network and of the server. It returns the status of the last answer.
// Its errors lack the address, whose path may be a secret.
func (n *Notifier) send(ctx context.Context, address string, m message) (status int, err error) {
	if err := n.Check(address); err != nil {
		return 0, fmt.Errorf("%w: %w", errGivenUp, err)
	}
	request, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, address, m.content)
	if err != nil {
		return 0, fmt.Errorf("%w: the address cannot be used", errGivenUp)
	}
	m.sign(request.Header, n.cfg.Secret, n.cfg.Now())
	client := retryablehttp.Client{
		HTTPClient: n.client, RetryWaitMin: n.cfg.Pause, RetryWaitMax: longest * n.cfg.Pause, RetryMax: attempts - 1,
		Backoff: func(least, most time.Duration, attempt int, answer *http.Response) time.Duration {
			return min(most, retryablehttp.DefaultBackoff(least, most, attempt, answer)) // the receiver may ask for a year
		},
		CheckRetry: retryablehttp.DefaultRetryPolicy, ErrorHandler: retryablehttp.PassthroughErrorHandler,
		PrepareRetry: func(r *http.Request) error { // each attempt has its time
			m.sign(r.Header, n.cfg.Secret, n.cfg.Now())
			return nil
		},
	}
	answer, err := client.Do(request)
	if err != nil {
		var withAddress *url.Error
		if errors.As(err, &withAddress) {
			err = withAddress.Err
		}
		return 0, fmt.Errorf("%w: %w", errGivenUp, err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body) // so that the connection can serve again
	if answer.StatusCode/100 != 2 {
		return answer.StatusCode, fmt.Errorf("%w: the receiver answered %s", errGivenUp, answer.Status)
	}
	return answer.StatusCode, nil
}

// body is the JSON of a message.
type body struct {
	Type      string        `json:"type"` // campaign.PHASE
	Timestamp time.Time     `json:"timestamp"`
	Data      record.Status `json:"data"`
}

// message is a webhook before its first attempt.
type message struct {
	id      string
	content []byte
}

// messageID names the newest change of a campaign. Its last part, once the number of a repetition, keeps it: other versions have sent the
// messages of campaigns on the board, and of those that return from the archive.
func messageID(c *record.Campaign) string {
	return fmt.Sprintf("%s.%d.0", c.ID, c.Changes)
}

// newMessage describes the campaign's phase, with the counts of its last status.
func newMessage(s record.CampaignStatus, now time.Time) (message, error) {
	c, status := s.Campaign, s.Status
	status.Phase, status.Reason = c.Phase, c.Reason
	content, err := json.Marshal(body{Type: "campaign." + string(c.Phase), Timestamp: now.UTC(), Data: status})
	return message{id: messageID(c), content: content}, err
}

// sign adds the headers of an attempt at a time.
func (m message) sign(h http.Header, secret []byte, now time.Time) {
	at := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s.%s.%s", m.id, at, m.content)
	h.Set("Content-Type", "application/json")
	h.Set("Webhook-Id", m.id)
	h.Set("Webhook-Timestamp", at)
	h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}
