package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"ddiff/internal/record"
	"ddiff/restore/item"
)

// part is a stored part of a ledger. Its stored form is a magic line, a line of JSON
// (partHeader), the entries, and the SHA-256 of everything before it. An entry has 16 bytes of identity, one byte of
// state, and the round and the index of the reason as uvarints: some 19 bytes.
type part struct {
	partHeader
	number  int // in its key
	entries []partEntry
}

// partHeader describes a part.
type partHeader struct {
	Schema   int    `json:"schema"`
	Campaign string `json:"campaign"`
	// Stream identifies the result stream, and Seq is the sequence number of the last outcome in this part and all parts
	// before it.
	Stream int64  `json:"stream,omitempty"`
	Seq    uint64 `json:"seq,omitempty"`
	// Entries is the number of entries. Reasons are their reasons from index 1; index 0 is no reason.
	Entries int      `json:"entries"`
	Reasons []string `json:"reasons,omitempty"`
	// Uses are the device-seconds of the outcomes in this part and all parts before it.
	Uses []record.Use `json:"uses,omitempty"`
}

// partEntry is an outcome.
type partEntry struct {
	id     item.Identity
	state  State
	round  int
	reason string
}

const (
	partMagic = "ddiff ledger part 1\n"
	// minEntryBytes is the size of the smallest entry.
	minEntryBytes = len(item.Identity{}) + 3
)

// errPart: an object is not a valid part of the ledger.
var errPart = errors.New("damaged part of the ledger")

// encode returns the stored form.
func (p *part) encode() ([]byte, error) {
	p.Schema, p.Entries, p.Reasons = record.Schema, len(p.entries), nil
	index := map[string]uint64{"": 0}
	for _, e := range p.entries {
		if _, ok := index[e.reason]; !ok {
			p.Reasons = append(p.Reasons, e.reason)
			index[e.reason] = uint64(len(p.Reasons))
		}
	}
	header, err := json.Marshal(p.partHeader)
	if err != nil {
		return nil, err
	}
	data := slices.Concat([]byte(partMagic), header, []byte("\n"))
	for _, e := range p.entries {
		data = append(data, e.id[:]...)
		data = append(data, byte(e.state))
		data = binary.AppendUvarint(data, uint64(max(e.round, 0)))
		data = binary.AppendUvarint(data, index[e.reason])
	}
	sum := sha256.Sum256(data)
	return append(data, sum[:]...), nil
}

// decodePart reads the stored form of a part of a campaign.
func decodePart(data []byte, campaign string) (*part, error) {
	if len(data) < len(partMagic)+sha256.Size || !bytes.HasPrefix(data, []byte(partMagic)) {
		return nil, fmt.Errorf("%w: the format is unknown", errPart)
	}
	data, stored := data[:len(data)-sha256.Size], data[len(data)-sha256.Size:]
	if sum := sha256.Sum256(data); !bytes.Equal(sum[:], stored) {
		return nil, fmt.Errorf("%w: the digest does not match", errPart)
	}
	header, rest, _ := bytes.Cut(data[len(partMagic):], []byte("\n"))
	var p part
	if err := json.Unmarshal(header, &p.partHeader); err != nil {
		return nil, fmt.Errorf("%w: %w", errPart, err)
	}
	switch {
	case p.Campaign != campaign:
		return nil, fmt.Errorf("%w: it belongs to campaign %s", errPart, p.Campaign)
	case p.Schema < 1 || p.Schema > record.Schema:
		return nil, fmt.Errorf("%w: this program reads version %d, it has %d", errPart, record.Schema, p.Schema)
	case p.Entries < 0 || p.Entries > len(rest)/minEntryBytes:
		return nil, fmt.Errorf("%w: %d entries in %d bytes", errPart, p.Entries, len(rest))
	}
	p.entries = make([]partEntry, p.Entries)
	for i := range p.entries {
		if len(rest) < minEntryBytes {
			return nil, fmt.Errorf("%w: it ends in entry %d", errPart, i)
		}
		e := &p.entries[i]
		e.id, e.state = item.Identity(rest[:len(e.id)]), State(rest[len(e.id)])
		rest = rest[len(e.id)+1:]
		round, n := binary.Uvarint(rest)
		reason, m := binary.Uvarint(rest[max(n, 0):])
		if n <= 0 || m <= 0 || round > math.MaxInt32 || e.state > Dead || reason > uint64(len(p.Reasons)) {
			return nil, fmt.Errorf("%w: entry %d is invalid", errPart, i)
		}
		rest = rest[n+m:]
		if e.round = int(round); reason > 0 {
			e.reason = p.Reasons[reason-1]
		}
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%w: %d bytes follow the entries", errPart, len(rest))
	}
	return &p, nil
}
