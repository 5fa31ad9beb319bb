package sheet

import (
	"strconv"
	"strings"

	"ddiff/restore/operator"
)

// Folder is before the keys of the contact sheets, which follow the names of the tasks.
const Folder = "sheets/"

// File is the contact sheet of one task.
type File struct{ Task, Label, Key string }

// Keys gives each task a distinct key that is safe as a file name.
func Keys(tasks []string, known operator.Set) []File {
	used := make(map[string]bool)
	sheets := make([]File, 0, len(tasks))
	for _, task := range tasks {
		name := strings.Map(func(r rune) rune {
			switch {
			case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_':
				return r
			}
			return '_'
		}, task)
		unique := name
		for n := 2; used[unique] || unique == ""; n++ {
			unique = name + "_" + strconv.Itoa(n)
		}
		used[unique] = true
		sheets = append(sheets, File{Task: task, Label: known.Label(task), Key: Folder + unique + ".png"})
	}
	return sheets
}
