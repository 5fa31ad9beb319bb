package page

import (
	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/published"
	"ddiff/internal/report/selection"
	"ddiff/manifest"
	"ddiff/restore/operator"
)

// Campaign describes the campaign on the page. The page omits empty fields.
type Campaign struct {
	Name string
	// Prior and PriorLicence are the name and the licence of the score model.
	Prior        string
	PriorLicence string
	Seed         uint64
	// Planned is the number of items that the campaign has. Default: those with an outcome.
	Planned int
	// Unfinished is the number of planned items that have no outcome and are none of Planned.
	Unfinished int
	// Skipped are the inputs that were left out.
	Skipped manifest.Skips
	// Outputs are the addresses of the outputs of a report over several campaigns, whose settings differ; empty for the
	// report of one campaign.
	Outputs []string
	// Select combines the runs of one measurement into one figure; empty means first.
	Select selection.Rule
	// Tasks order and label the tasks; empty means the built-in ones. Unknown tasks follow, by name.
	Tasks operator.Set
	// Published are figures of a publication to compare with; nil for none.
	Published *published.Figures
	// LeaveOut leaves out a metric that has several versions, with a note, instead of ending with ErrVersions.
	LeaveOut bool
	// Tunings say which settings were chosen on which images. Nil: no note about it.
	Tunings *aggregate.Tunings
}
