package board

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"ddiff/api"
	"ddiff/internal/record"
	"ddiff/manifest"
)

// Changes returns the change of a record by which a person changes settings of a campaign that has not finished.
func Changes(change api.Change) func(c *record.Campaign) error {
	return func(c *record.Campaign) error {
		if c.Phase == record.PhaseFinished {
			return fmt.Errorf("%w: the campaign has finished", ErrRefused)
		}
		next := *c
		next.Priority, next.Weight = cmp.Or(change.Priority, c.Priority), cmp.Or(change.Weight, c.Weight)
		if change.Pool != nil {
			next.Spec.Pool = *change.Pool
		}
		if change.Deadline != nil && *change.Deadline != c.Spec.Deadline {
			next.Spec.Deadline, next.Urgent = *change.Deadline, false
		}
		if change.Budget != nil {
			next.Spec.Budget = *change.Budget
		}
		if fields := changed(c, &next); len(fields) == 0 {
			return ErrUnchanged
		}
		if err := errors.Join(next.Spec.ValidatePlacement(), next.Validate()); err != nil {
			return fmt.Errorf("%w: %w", ErrRefused, err)
		}
		*c = next
		return nil
	}
}

// changed names the settings that differ between two records, as flags of ddiff change that give those of the second.
func changed(a, b *record.Campaign) []string {
	var flags []string
	add := func(name string, differ bool, value any) {
		if differ {
			flags = append(flags, fmt.Sprintf("--%s %v", name, value))
		}
	}
	add("priority", a.Priority != b.Priority, b.Priority)
	add("weight", a.Weight != b.Weight, b.Weight)
	add("pool", a.Spec.Pool != b.Spec.Pool, cmp.Or(b.Spec.Pool, "none"))
	add("deadline", a.Spec.Deadline != b.Spec.Deadline, cmp.Or(b.Spec.Deadline, "none"))
	add("budget", a.Spec.Budget != b.Spec.Budget, b.Spec.Budget.From(a.Spec.Budget))
	return flags
}

// SettingsOf returns the settings of a campaign that may be changed.
func SettingsOf(c *record.Campaign) api.Change {
	return api.Change{Priority: c.Priority, Weight: c.Weight, Pool: &c.Spec.Pool, Deadline: &c.Spec.Deadline, Budget: &c.Spec.Budget}
}

// Kept says that a campaign which exists has other settings than a submission asks for, and how to change them; empty if they are equal. A priority
// and a weight that the submission leaves out are those of the campaign.
func Kept(c *record.Campaign, spec *manifest.Spec, o Order) string {
	asked := *c
	asked.Priority, asked.Weight = cmp.Or(o.Priority, c.Priority), cmp.Or(o.Weight, c.Weight)
	asked.Spec.Pool, asked.Spec.Deadline, asked.Spec.Budget = spec.Pool, spec.Deadline, spec.Budget
	flags := changed(c, &asked)
	if len(flags) == 0 {
		return ""
	}
	return fmt.Sprintf("the campaign exists and keeps its settings; to change them: ddiff change %s %s", c.ID, strings.Join(flags, " "))
}

// CheckPriority returns an error for a priority that needs another role.
func CheckPriority(p api.Priority, role api.Role) error {
	if p == record.PriorityHigh && role != api.Admin {
		return api.NewError(api.ErrDenied, "priority: high goes before the campaigns of all others and needs the role admin; choose normal or low")
	}
	return nil
}
