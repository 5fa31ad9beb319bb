package shard

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"ddiff/internal/record"
	"ddiff/restore/item"
	"ddiff/storage"
)

// Header describes a window.
type Header struct {
	Schema   int    `json:"schema"`
	Campaign string `json:"campaign"`
	// Number counts windows from 0.
	Number int `json:"number"`
	// Row is the number of rows before the window, Rows the number in the window.
	Row  int `json:"row"`
	Rows int `json:"rows"`
	// Item is the manifest index of the first item, Items the number of items, including failed ones.
	Item  int `json:"item"`
	Items int `json:"items"`
	// Failures is the number of failed results after the items in the stored form.
	Failures int `json:"failures"`
	// Last: the dataset ends with this window.
	Last bool `json:"last"`
	// Listed is the number of rows of the dataset up to the end of the window, RowsSHA256 their digest, and Read the time at
	// which its files began to be read.
	Listed     int       `json:"listed,omitempty"`
	RowsSHA256 string    `json:"rows_sha256,omitempty"`
	Read       time.Time `json:"read,omitzero"`
	// Append is the part of the dataset with the rows; Last is that of the part.
	Append Appended `json:"append,omitzero"`
	// Changed describes, in one line, how the dataset changed between the window before and this one. Empty: it did not.
	Changed string `json:"changed,omitempty"`
}

// Window holds consecutive rows: their items, sorted by task, and a failed result for each item that cannot be restored.
type Window struct {
	Header
	Items  []item.Item
	Failed []item.Result
}

// Key is the storage key of a campaign's window, below the store of the cluster.
func Key(campaign string, number int) string {
	return fmt.Sprintf("%s%08d.jsonl.gz", Prefix(campaign), number)
}

// Prefix is the common prefix of the keys of a campaign's windows.
func Prefix(campaign string) string { return "campaigns/" + campaign + "/shards/" }

const (
	// maxLine bounds a line of a stored window, in bytes.
	maxLine = 16 << 20
	// maxNumber bounds the numbers in the header: sums of two are positive.
	maxNumber = 1 << 48
)

// Encode returns the stored form of the window.
func (w *Window) Encode() ([]byte, error) {
	w.Failures = len(w.Failed)
	var out bytes.Buffer
	// Digests do not compress, so a higher level gains nothing.
	zip, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	lines := json.NewEncoder(zip)
	err = lines.Encode(w.Header)
	for _, it := range w.Items {
		err = errors.Join(err, lines.Encode(it))
	}
	for _, r := range w.Failed {
		err = errors.Join(err, lines.Encode(r))
	}
	if err = errors.Join(err, zip.Close()); err != nil {
		return nil, fmt.Errorf("encode window %d of %s: %w", w.Number, w.Campaign, err)
	}
	return out.Bytes(), nil
}

// Read reads a stored window.
func Read(ctx context.Context, s storage.Store, key string) (*Window, error) {
	data, err := s.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read window: %w", err)
	}
	w, err := Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return w, nil
}

// All yields the stored windows of a campaign in order.
func All(ctx context.Context, s storage.Store, campaign string) iter.Seq2[*Window, error] {
	return storage.Each(ctx, s, Prefix(campaign), func(ctx context.Context, info storage.Info) (*Window, error) { return Read(ctx, s, info.Key) })
}

// Decode reads the stored form of a window.
func Decode(data []byte) (*Window, error) {
	w := &Window{}
	if err := w.decode(data); err != nil {
		return nil, fmt.Errorf("read window: %w", err)
	}
	return w, nil
}

func (w *Window) decode(data []byte) error {
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(zip)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	next := func(v any) error {
		if !lines.Scan() {
			if err := lines.Err(); err != nil {
				return err
			}
			return io.ErrUnexpectedEOF
		}
		return json.Unmarshal(lines.Bytes(), v)
	}
	if err := next(&w.Header); err != nil {
		return err
	}
	if w.Schema < 1 || w.Schema > record.Schema {
		return fmt.Errorf("this program reads version %d, it has %d", record.Schema, w.Schema)
	}
	numbers := []int{w.Number, w.Row, w.Rows, w.Item, w.Header.Items, w.Failures, w.Listed}
	if slices.Min(numbers) < 0 || slices.Max(numbers) > maxNumber || w.Failures > w.Header.Items || w.Append.First < 0 || w.Append.First > w.Number {
		return errors.New("its counts contradict each other")
	}
	for range w.Header.Items - w.Failures {
		var it item.Item
		if err := next(&it); err != nil {
			return err
		}
		if it.Index-w.Item < 0 || it.Index-w.Item >= w.Header.Items {
			return fmt.Errorf("item %d is outside of it", it.Index)
		}
		w.Items = append(w.Items, it)
	}
	for range w.Failures {
		var r item.Result
		if err := next(&r); err != nil {
			return err
		}
		w.Failed = append(w.Failed, r)
	}
	if lines.Scan() {
		return errors.New("the file has lines after the last entry")
	}
	return lines.Err() // with it the checksum is read
}
