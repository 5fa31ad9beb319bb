package method

import (
	"fmt"
	"slices"
	"strings"

	"ddiff/restore/operator"
	"ddiff/restore/prior"
)

// serves returns ErrSetting, with the reason, if the method refuses a task.
func (i Info) serves(task string, own *operator.File) error {
	if i.Refuses == nil {
		return nil
	}
	if reason := i.Refuses(task, own); reason != "" {
		return fmt.Errorf("%w method: %s cannot restore task %s: %s", ErrSetting, i.Name, task, reason)
	}
	return nil
}

// Serves returns ErrSetting if a method refuses a task, see [Info.Refuses]. The message names the method, the task, the reason,
// and the methods of the set that can restore the task with the prior of this card. own is the file of the task's operator,
// nil for a built-in one.
func (s Set) Serves(name, task string, own *operator.File, c *prior.Card) error {
	m, err := s.Find(name)
	if err != nil {
		return err
	}
	if err = m.Info().serves(task, own); err == nil {
		return nil
	}
	var able []string
	for _, i := range s.Infos() {
		if i.serves(task, own) == nil && i.Suits(c) == nil {
			able = append(able, i.Name)
		}
	}
	if len(able) == 0 {
		return fmt.Errorf("%w; no method can", err)
	}
	slices.Sort(able)
	return fmt.Errorf("%w; methods that can: %s", err, strings.Join(able, ", "))
}
