package result

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"ddiff/manifest"
)

// scoreKey identifies a score in memory.
type scoreKey struct {
	item     identity
	pictures identity
	metric   uint16 // index in scoreTable.metrics
}

// scoreTable has the scores that outputs have besides their results.
type scoreTable struct {
	mu      sync.Mutex // guards the fields while parts are read
	metrics []string
	index   map[string]uint16
	values  map[scoreKey]float64
	skipped map[scoreKey]struct{} // the metric does not apply
}

// readScores reads all scores of the outputs, some 60 bytes of memory for each. The error wraps [ErrScores].
func readScores(ctx context.Context, outputs []Output) (*scoreTable, error) {
	t := &scoreTable{index: make(map[string]uint16), values: make(map[scoreKey]float64), skipped: make(map[scoreKey]struct{})}
	for _, o := range outputs {
		if err := t.read(ctx, o); err != nil {
			return nil, fmt.Errorf("read %w of %s: %w", ErrScores, o.Address, err)
		}
	}
	return t, nil
}

func (t *scoreTable) read(ctx context.Context, o Output) error {
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(ReadCalls)
	var listing error
	for info, err := range o.Store.List(inner, manifest.ScoresFolder) {
		if err != nil {
			listing = err
			break
		}
		if !isPart(info.Key) {
			continue
		}
		group.Go(func() error {
			data, err := o.Store.Get(inner, info.Key)
			if err == nil {
				err = t.add(data)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", info.Key, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil { // it ends the listing with a cancellation
		return err
	}
	return listing
}

// errScores explains a part that cannot be read.
func errScores(line int, err error) error {
	return fmt.Errorf("decode line %d: %w; remove the file and run ddiff score again", line, err)
}

// add adds the scores of one part.
func (t *scoreTable) add(part []byte) error {
	lines := bufio.NewScanner(bytes.NewReader(part))
	lines.Buffer(nil, 1<<20)
	var head manifest.ScoreHead
	lines.Scan()
	if err := json.Unmarshal(lines.Bytes(), &head); err != nil {
		return errScores(1, err)
	}
	if err := checkMetricID(head.Metric); err != nil {
		return errScores(1, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	metric, known := t.index[head.Metric]
	if !known {
		metric = uint16(len(t.metrics))
		t.metrics, t.index[head.Metric] = append(t.metrics, head.Metric), metric
	}
	for n := 2; lines.Scan(); n++ {
		var s manifest.Score
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return errScores(n, err)
		}
		key := scoreKey{metric: metric}
		item, ok := ParseIdentity(s.Item)
		pictures, err := hex.DecodeString(s.Pictures)
		if !ok || err != nil || len(pictures) != len(key.pictures) {
			return errScores(n, errors.New("item or pictures are no digest"))
		}
		key.item, key.pictures = item, identity(pictures)
		if s.Value == nil {
			t.skipped[key] = struct{}{}
		} else {
			t.values[key] = *s.Value
		}
	}
	return lines.Err()
}

// checkMetricID checks that an id can be the name of a column and of a folder.
func checkMetricID(id string) error {
	name, version, ok := strings.Cut(id, "@")
	valid := func(s, more string) bool {
		return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_"+more) == ""
	}
	if !ok || !valid(name, "") || !valid(version, ":") {
		return fmt.Errorf("metric %q is no id such as psnr@1", id)
	}
	return nil
}

// keyOf returns the key of a result's scores, and false for a result without two pictures.
func keyOf(r *manifest.Result) (key scoreKey, ok bool) {
	pictures := manifest.ScoredPictures(r)
	if pictures == "" {
		return key, false
	}
	_, err := hex.Decode(key.pictures[:], []byte(pictures))
	key.item, ok = ParseIdentity(r.Item.ID)
	return key, ok && err == nil
}

// of returns the scores of a result, without a value where the metric does not apply.
func (t *scoreTable) of(r *manifest.Result) []manifest.Score {
	key, ok := keyOf(r)
	if !ok || r.Outcome != manifest.OutcomeDone {
		return nil
	}
	var out []manifest.Score
	for i, metric := range t.metrics {
		key.metric = uint16(i)
		score := manifest.Score{Metric: metric, Item: r.Item.ID}
		v, scored := t.values[key]
		if scored {
			score.Value = &v
		}
		if _, skipped := t.skipped[key]; scored || skipped {
			out = append(out, score)
		}
	}
	return out
}

// WithScores adds to each result the scores of its pictures in the outputs. It holds all scores in memory, some 60 bytes
// each. An error of reading them wraps [ErrScores].
func WithScores(ctx context.Context, outputs []Output, results iter.Seq2[manifest.Result, error]) iter.Seq2[manifest.Result, error] {
	return func(yield func(manifest.Result, error) bool) {
		table, err := readScores(ctx, outputs)
		if err != nil {
			yield(manifest.Result{}, err)
			return
		}
		for r, err := range results {
			if err == nil {
				r.Scores = table.of(&r)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}
