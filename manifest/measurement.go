package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// checkRange returns an error for values that are not finite or not in order.
func checkRange(r item.ValueRange) error {
	if math.IsNaN(r[0]) || math.IsInf(r[0], 0) || math.IsNaN(r[1]) || math.IsInf(r[1], 0) || r[0] >= r[1] {
		return fmt.Errorf("%g, %g is no range; give the values of black and of white, as in 0, 255", r[0], r[1])
	}
	return nil
}

// IsMeasurement reports whether the name of a file is that of a stored measurement: an array or a picture.
func IsMeasurement(name string) bool { return isArray(name) || IsImage(name) }

func isArray(name string) bool { return strings.EqualFold(path.Ext(name), ".npy") }

// isEntry reports whether a file of a directory or a glob is a row of the dataset.
func (d *Dataset) isEntry(name string) bool {
	return IsImage(name) || d.Measurements && isArray(name)
}

// withoutColumns reports whether every row of the dataset is a file alone: no row can name a measurement, a mask or a kernel. It does not
// read the dataset, and returns false if the path leaves it open.
func (d *Dataset) withoutColumns() bool {
	p, local := strings.CutPrefix(strings.ToLower(d.Path), LocalPrefix)
	may := strings.HasSuffix
	if !local && strings.ContainsAny(p, "{}") {
		may = strings.Contains // the braces may stand for any ending
	}
	return !strings.Contains(p, "://") && !slices.ContainsFunc([]string{"csv", "jsonl", "parquet", "tar"}, func(ending string) bool { return may(p, ending) })
}

// Complete returns a row of the dataset with the settings that the dataset has for all rows.
func (d *Dataset) Complete(row Row) Row {
	if d.Measurements && row.Measurement == "" {
		row.Image, row.Measurement = "", row.Image
		if row.Err == nil && (row.ImageSHA256 != "" || row.Width != 0 || row.Height != 0) {
			row.Err = errors.New("sha256, width and height describe an image, and dataset.measurements makes it a measurement; remove the columns")
		}
		row.ImageSHA256, row.Width, row.Height = "", 0, 0
	}
	if row.Overrides.Mask == "" {
		row.Overrides.Mask = d.Mask
	}
	if row.Overrides.Kernel == "" {
		row.Overrides.Kernel = d.Kernel
	}
	return row
}

// inputFile is a mask or a kernel; an empty path is none.
type inputFile struct{ name, path string }

func inputFiles(mask, kernel string) []inputFile {
	return []inputFile{{"mask", mask}, {"kernel", kernel}}
}

// inputs checks mask, kernel and measurement range of a dataset against the tasks.
func (c *checker) inputs() {
	s := c.spec
	for _, t := range s.Tasks {
		if reason := unranged(c.Operators.Known(t.Name)); reason != "" && s.Dataset.MeasurementRange != nil {
			c.problems = append(c.problems, s.unusedRange(fmt.Errorf("task %s does not use it: %s", t.Name, reason)))
		}
	}
	c.taskFiles()
	for _, f := range inputFiles(s.Dataset.Mask, s.Dataset.Kernel) {
		for _, t := range s.Tasks {
			if d, known := c.task(t.Name); known && f.path != "" && !d.Uses(f.name) {
				c.add("dataset."+f.name, errors.New(unusedInput(t.Name, f.name, d)))
			}
		}
	}
	if s.Dataset.Mask != "" || s.Dataset.Kernel != "" || !s.Dataset.withoutColumns() {
		return
	}
	for i, t := range s.Tasks {
		if fileOf(t) == "" { // taskFiles checks the others
			d, _ := c.task(t.Name)
			c.add(taskField(i), new(Overrides).checkInput(t.Name, d, d.Required && t.Operator == ""))
		}
	}
}

// fileOf is the mask or the kernel of a task.
func fileOf(t item.Task) string { return cmp.Or(t.Mask, t.Kernel) }

// TaskFiles returns the masks and kernels of the tasks of a row that has none of its own, each once.
func TaskFiles(row Row, spec *Spec) []string {
	if row.Overrides.Mask != "" || row.Overrides.Kernel != "" {
		return nil
	}
	var out []string
	for _, t := range rowTasks(row, spec) {
		if file := fileOf(t); file != "" && !slices.Contains(out, file) {
			out = append(out, file)
		}
	}
	return out
}

func (c *checker) taskFiles() {
	for i, t := range c.spec.Tasks {
		for _, f := range inputFiles(t.Mask, t.Kernel) {
			field := taskField(i) + "." + f.name
			d, known := c.task(t.Name)
			switch {
			case f.path == "":
			case known && !d.Uses(f.name):
				c.add(field, errors.New(unusedInput(t.Name, f.name, d)))
			case t.Mask != "" && t.Kernel != "":
				c.add(field, errors.New("the task has a mask and a kernel; give them in dataset"))
			case c.spec.Dataset.Mask != "" || c.spec.Dataset.Kernel != "":
				c.add(field, errors.New("the dataset has a mask or kernel for all tasks; remove one of them"))
			}
		}
	}
}

// unusedRange is the error of a measurement range without effect.
func (s *Spec) unusedRange(cause error) *FieldError {
	return s.problem("dataset.measurement_range", fmt.Errorf("%w; remove it", cause))
}

// checkMeasurementRange returns an error for a row whose measurement the range of the dataset does not describe.
func (e *Expander) checkMeasurementRange(row Row, task string) error {
	switch reason := unranged(e.Known.Operators.Known(task)); {
	case e.spec.Dataset.MeasurementRange == nil:
		return nil
	case row.Measurement == "":
		return e.spec.unusedRange(errors.New("it is for measurements, and the row has none"))
	case reason != "":
		return e.spec.unusedRange(fmt.Errorf("task %s does not use it: %s", task, reason))
	}
	return nil
}

// unusedInput is the error of a file that a task does not use.
func unusedInput(task, name string, d operator.Definition) string {
	use := "it uses neither mask nor kernel"
	for _, other := range []string{"mask", "kernel"} {
		if d.Uses(other) {
			use = "it uses a " + other
		}
	}
	return fmt.Sprintf("task %s does not use a %s, %s; remove the %s", task, name, use, name)
}

// checkInput returns an error for a file of a row that a task does not use, and for a missing one that it requires.
func (o *Overrides) checkInput(task string, d operator.Definition, required bool) error {
	given := false
	for _, f := range inputFiles(o.Mask, o.Kernel) {
		if f.path != "" && !d.Uses(f.name) {
			return errors.New(unusedInput(task, f.name, d))
		}
		given = given || f.path != "" && f.name == d.Input
	}
	if required && !given {
		return fmt.Errorf("task %s needs a %s; give --%s, dataset.%s of the campaign file, or the column %s of a list", task, d.Input, d.Input, d.Input, d.Input)
	}
	return nil
}
