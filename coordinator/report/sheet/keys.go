package sheet

import (
	"ddiff/coordinator/report/sweep"
	"ddiff/restore/operator"
)

// Folder is before the keys of the contact sheets, which follow the names of the tasks.
const Folder = "sheets/"

// File is the contact sheet of one task.
type File struct{ Task, Label, Key string }

// Keys gives each task a distinct key that is safe as a file name.
func Keys(tasks []string, known operator.Set) []File {
	used := make(sweep.FileNames)
	sheets := make([]File, 0, len(tasks))
	for _, task := range tasks {
		sheets = append(sheets, File{Task: task, Label: known.Label(task), Key: Folder + used.Unique(task, "-_") + ".png"})
	}
	return sheets
}
