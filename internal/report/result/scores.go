package result

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"

	"ddiff/restore/item"
)

// scoreKey identifies a score in memory.
type scoreKey struct {
	item     item.Identity
	pictures item.Identity
	metric   int // index in scoreTable.metrics
}

// scoreTable has the scores that outputs have besides their results.
type scoreTable struct {
	metrics []string
	values  map[scoreKey]*float64 // nil: the metric does not apply
}

// readScores reads all scores of the outputs, some 80 bytes of memory for each. The error wraps [ErrScores].
func readScores(ctx context.Context, outputs []Output) (*scoreTable, error) {
	t := &scoreTable{values: make(map[scoreKey]*float64)}
	for _, o := range outputs {
		if err := t.read(ctx, o); err != nil {
			return nil, fmt.Errorf("read %w of %s: %w", ErrScores, o.Address, err)
		}
	}
	return t, nil
}

// read adds the scores of an output. The first line of a list names the metric.
func (t *scoreTable) read(ctx context.Context, o Output) error {
	metric := 0
	for l, err := range o.lines(ctx, ScoresFolder) {
		if err != nil {
			return err
		}
		if l.number == 1 {
			metric, err = t.metric(l.text)
		} else {
			err = t.add(metric, l.text)
		}
		if err != nil {
			return fmt.Errorf("%s: decode line %d: %w; move the file away and run ddiff score again", l.key, l.number, err)
		}
	}
	return nil
}

// metric returns the index of the metric that the head of a list names.
func (t *scoreTable) metric(line []byte) (int, error) {
	var head ScoreHead
	if err := json.Unmarshal(line, &head); err != nil {
		return 0, err
	}
	if err := checkMetricID(head.Metric); err != nil {
		return 0, err
	}
	at := slices.Index(t.metrics, head.Metric)
	if at < 0 {
		at = len(t.metrics)
		t.metrics = append(t.metrics, head.Metric)
	}
	return at, nil
}

// add adds the score of a line.
func (t *scoreTable) add(metric int, line []byte) error {
	var s item.Score
	if err := json.Unmarshal(line, &s); err != nil {
		return err
	}
	id, ok := item.ParseIdentity(s.Item)
	pictures, err := hex.DecodeString(s.Pictures)
	if !ok || err != nil || len(pictures) != len(item.Identity{}) {
		return errors.New("item or pictures are no digest")
	}
	t.values[scoreKey{id, item.Identity(pictures), metric}] = s.Value
	return nil
}

var metricID = regexp.MustCompile(`^[a-z0-9_]+@[a-z0-9_:]+$`)

// checkMetricID checks that an id can be the name of a column and of a folder.
func checkMetricID(id string) error {
	if !metricID.MatchString(id) {
		return fmt.Errorf("metric %q is no id such as psnr@1", id)
	}
	return nil
}

// keyOf returns the key of a result's scores, and false for a result without two pictures.
func keyOf(r *item.Result) (key scoreKey, ok bool) {
	pictures := ScoredPictures(r)
	if pictures == "" {
		return key, false
	}
	_, err := hex.Decode(key.pictures[:], []byte(pictures))
	key.item, ok = item.ParseIdentity(r.Item.ID)
	return key, ok && err == nil
}

// of returns the scores of a result, without a value where the metric does not apply.
func (t *scoreTable) of(r *item.Result) []item.Score {
	key, ok := keyOf(r)
	if !ok || r.Outcome != item.OutcomeDone {
		return nil
	}
	var out []item.Score
	for i, metric := range t.metrics {
		key.metric = i
		if v, known := t.values[key]; known {
			out = append(out, item.Score{Metric: metric, Item: r.Item.ID, Value: v})
		}
	}
	return out
}

// WithScores adds to each result the scores of its pictures in the outputs. It holds all scores in memory, some 80 bytes
// each. An error of reading them wraps [ErrScores].
func WithScores(ctx context.Context, outputs []Output, results iter.Seq2[item.Result, error]) iter.Seq2[item.Result, error] {
	return func(yield func(item.Result, error) bool) {
		table, err := readScores(ctx, outputs)
		if err != nil {
			yield(item.Result{}, err)
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
