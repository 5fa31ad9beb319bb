package testbed

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"ddiff/restore/item"
)

// happened is a fault with its start time.
type happened struct {
	fault
	at     time.Time
	target string
}

// journal records the start of faults.
type journal struct {
	mu  sync.Mutex
	all []happened
}

func (j *journal) note(x fault, target string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.all = append(j.all, happened{x, time.Now(), target})
}

// recovery returns the longest time from the beginning of a fault to the next result, with the
// fault. settled holds the times of all results.
func recovery(faults []happened, settled []time.Time, end time.Time) (longest time.Duration, of happened) {
	slices.SortFunc(settled, time.Time.Compare)
	for _, x := range faults {
		i, _ := slices.BinarySearchFunc(settled, x.at, time.Time.Compare)
		next := end
		if i < len(settled) {
			next = settled[i]
		}
		if d := next.Sub(x.at); d > longest {
			longest, of = d, x
		}
	}
	return longest, of
}

// settledTimes returns the times of the results below a directory.
func settledTimes(dir string) ([]time.Time, error) {
	found, err := filepath.Glob(filepath.Join(dir, "items", "*", item.FileResult))
	if err != nil {
		return nil, err
	}
	var times []time.Time
	for _, path := range found {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		times = append(times, info.ModTime())
	}
	return times, nil
}

// attemptsOf counts attempts from the workers' logs.
type attemptsOf struct {
	// redelivered counts deliveries beyond the first of an item, again solutions beyond the first.
	redelivered, again int
}

// readLogs counts attempts in the JSON logs of workers.
func readLogs(workers []*Process) (attemptsOf, error) {
	type key struct{ item, task string }
	attempts, solved := map[key]int{}, map[key]int{}
	for _, p := range workers {
		f, err := os.Open(p.LogFile())
		if err != nil {
			return attemptsOf{}, err
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var line struct {
				Message string  `json:"msg"`
				Item    string  `json:"item"`
				Task    string  `json:"task"`
				Attempt int     `json:"attempt"`
				Seconds float64 `json:"seconds"`
			}
			if json.Unmarshal(lines.Bytes(), &line) != nil || line.Attempt == 0 {
				continue // truncated by a kill, or no line about an item
			}
			k := key{line.Item, line.Task}
			attempts[k] = max(attempts[k], line.Attempt)
			if line.Message == "restored item" && line.Seconds > 0 {
				solved[k]++
			}
		}
		err = lines.Err()
		f.Close() // opened for reading
		if err != nil {
			return attemptsOf{}, err
		}
	}
	var n attemptsOf
	for _, a := range attempts {
		n.redelivered += a - 1
	}
	for _, s := range solved {
		n.again += s - 1
	}
	return n, nil
}
