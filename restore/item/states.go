package item

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// mostStates is the largest number of states of an item that are kept, and mostValues that of their numbers, together 1 GiB: they are in memory until the
// item ends.
const (
	mostStates = 128
	mostValues = 1 << 28
)

// KeptStates reads [Item.KeepStates]: numbers of steps such as "0,10,20", where 0 is the start, or "every 10". It returns nil for an empty text, and otherwise
// a function that reports whether the state after a step is kept.
func KeptStates(text string) (at func(step int) bool, err error) {
	if text == "" {
		return nil, nil
	}
	if every, ok := strings.CutPrefix(text, "every "); ok {
		n, err := strconv.Atoi(every)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q: every is followed by a number of steps, as in every 10", text)
		}
		return func(step int) bool { return step%n == 0 }, nil
	}
	var steps []int
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is neither a list of steps, as in 0,10,20, nor every 10", text)
		}
		steps = append(steps, n)
	}
	return func(step int) bool { return slices.Contains(steps, step) }, nil
}

// CheckStates returns an error if too many states of a run of so many steps would be kept, of an image with a number of values.
func CheckStates(text string, steps, values int) error {
	at, err := KeptStates(text)
	if err != nil || at == nil {
		return err
	}
	kept := 0
	for step := range steps + 1 {
		if at(step) {
			kept++
		}
	}
	if kept > mostStates {
		return fmt.Errorf("keep_states %q keeps %d states of %d steps, at most %d are allowed; keep every %d", text, kept, steps, mostStates, (steps+mostStates-2)/(mostStates-1))
	}
	if kept > mostValues/values {
		return fmt.Errorf("keep_states %q keeps %d states of %d values, more than 1 GiB; keep at most %d", text, kept, values, mostValues/values)
	}
	return nil
}
