package manifest

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// ID names the campaign in queues, stores and reports: its name as a token of [a-z0-9-] and eight hex
// digits of a digest of the spec, as in "night-photos-5f0c11d2".
//
// The digest leaves out Output, Batch and Attempts, which change no result: an interrupted campaign
// may resume with another batch or more attempts. It includes the absolute path of the dataset: a
// moved dataset is another campaign with the same items. ID is defined for specs that
// [Spec.Validate] accepts; for infinite numbers and NaN the digits are "invalid".
func (s *Spec) ID() string {
	c := *s
	c.Output, c.Batch, c.Attempts = "", 0, 0
	key, err := digest(struct {
		Schema int  `json:"schema"`
		Spec   Spec `json:"spec"`
	}{SchemaVersion, c})
	if err != nil {
		return fmt.Sprintf("%s-invalid", token(s.Name))
	}
	return fmt.Sprintf("%s-%s", token(s.Name), hex.EncodeToString(key[:4]))
}

// token reduces a name to at most 40 characters of [a-z0-9-].
func token(name string) string {
	const longest = 40
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(name) {
		if r < 'a' || r > 'z' {
			if r < '0' || r > '9' {
				gap = b.Len() > 0
				continue
			}
		}
		if gap {
			b.WriteByte('-')
			gap = false
		}
		b.WriteRune(r)
	}
	t := b.String()
	if len(t) > longest {
		t = strings.TrimRight(t[:longest], "-")
	}
	if t == "" {
		return "campaign"
	}
	return t
}
