package method

import (
	"fmt"
	"slices"
	"strings"

	"ddiff/restore/operator"
	"ddiff/restore/prior"
)

// serves returns ErrSetting, with the reason, if the method refuses a task.
func (i Info) serves(task operator.Definition) error {
	if i.Refuses == nil {
		return nil
	}
	if reason := i.Refuses(task); reason != "" {
		return fmt.Errorf("%w method: %s cannot restore task %s: %s", ErrSetting, i.Name, task.Name, reason)
	}
	return nil
}

// Serves returns ErrSetting if a method refuses a task, see [Info.Refuses]. The message names the method, the task, the reason,
// and the methods of the set that can restore the task with the prior of this card.
func (s Set) Serves(name string, task operator.Definition, c *prior.Card) error {
	m, err := s.Find(name)
	if err != nil {
		return err
	}
	if err = m.Info().serves(task); err == nil {
		return nil
	}
	var able []string
	for _, i := range s.Infos() {
		if i.serves(task) == nil && i.Suits(c) == nil {
			able = append(able, i.Name)
		}
	}
	if len(able) == 0 {
		return fmt.Errorf("%w; no method can", err)
	}
	slices.Sort(able)
	return fmt.Errorf("%w; methods that can: %s", err, strings.Join(able, ", "))
}
