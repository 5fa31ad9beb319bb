package report

import (
	"cmp"
	"strings"
	"unicode"
)

// paperTasks lists the tasks as the paper's tables do. Other tasks follow, by name.
var paperTasks = []struct{ name, label string }{
	{"super_resolution", "Super-resolution"},
	{"inpaint_box", "Inpainting (box)"},
	{"inpaint_random", "Inpainting (random)"},
	{"gaussian_deblur", "Gaussian deblurring"},
	{"motion_deblur", "Motion deblurring"},
	{"phase_retrieval", "Phase retrieval"},
	{"nonlinear_deblur", "Nonlinear deblurring"},
	{"hdr", "High dynamic range"},
}

// taskRank is the task's place in the paper's tables, after all of them when unknown.
func taskRank(task string) int {
	for i, t := range paperTasks {
		if t.name == task {
			return i
		}
	}
	return len(paperTasks)
}

// taskLabel is the task's name for people.
func taskLabel(task string) string {
	if i := taskRank(task); i < len(paperTasks) {
		return paperTasks[i].label
	}
	return task
}

func compareTasks(a, b string) int {
	return cmp.Or(cmp.Compare(taskRank(a), taskRank(b)), strings.Compare(a, b))
}

// compareNatural orders strings with their digit runs read as numbers: img2 before img10.
func compareNatural(a, b string) int {
	for x, y := a, b; ; {
		var p, q string
		p, x = chunk(x)
		q, y = chunk(y)
		if p == "" || q == "" {
			return cmp.Or(cmp.Compare(len(p), len(q)), strings.Compare(a, b))
		}
		order := strings.Compare(p, q)
		if isDigit(p[0]) && isDigit(q[0]) {
			p, q = strings.TrimLeft(p, "0"), strings.TrimLeft(q, "0")
			order = cmp.Or(cmp.Compare(len(p), len(q)), strings.Compare(p, q))
		}
		if order != 0 {
			return order
		}
	}
}

// chunk cuts off the leading run of digits, or of anything else.
func chunk(s string) (head, rest string) {
	if s == "" {
		return "", ""
	}
	n := 1
	for n < len(s) && isDigit(s[n]) == isDigit(s[0]) {
		n++
	}
	return s[:n], s[n:]
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// printable replaces what would break a line or steer a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
