package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"ddiff/manifest"
)

// body is the JSON of a message.
type body struct {
	Type      string          `json:"type"` // campaign.PHASE
	Timestamp time.Time       `json:"timestamp"`
	Data      manifest.Status `json:"data"`
}

// message is a webhook before its first attempt.
type message struct {
	id      string
	content []byte
}

// messageID names the newest change of a campaign.
func messageID(c *manifest.Campaign) string {
	return fmt.Sprintf("%s.%d.%d", c.ID, c.Changes, c.Notices)
}

// newMessage describes the campaign's phase, with the counts of its last status.
func newMessage(s manifest.CampaignStatus, now time.Time) (message, error) {
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
