package shard

import (
	"fmt"
	"strings"
	"testing"

	"ddiff/manifest"
	"ddiff/restore/item"
)

func TestSortTaskMajor(t *testing.T) {
	t.Parallel()
	spec := &manifest.Spec{Tasks: []item.Task{{Name: "hdr"}, {Name: "blur"}}, Methods: []string{"ddiff", "hqs"}}
	var items []item.Item
	for _, tasks := range [][]string{{"another"}, {"hdr", "blur"}, {"hdr"}} { // of three rows, of which the first alone names a task
		for _, task := range tasks {
			for _, method := range spec.Methods {
				for run := range 2 {
					items = append(items, item.Item{Index: len(items), Task: task, Method: method, Run: run})
				}
			}
		}
	}
	SortTaskMajor(items, spec)
	var got []string
	for _, it := range items {
		got = append(got, fmt.Sprintf("%d %s %s %d", it.Index, it.Task, it.Method, it.Run))
	}
	want := "4 hdr ddiff 0, 5 hdr ddiff 1, 12 hdr ddiff 0, 13 hdr ddiff 1, 6 hdr hqs 0, 7 hdr hqs 1, 14 hdr hqs 0, 15 hdr hqs 1, " +
		"8 blur ddiff 0, 9 blur ddiff 1, 10 blur hqs 0, 11 blur hqs 1, 0 another ddiff 0, 1 another ddiff 1, 2 another hqs 0, 3 another hqs 1"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}
