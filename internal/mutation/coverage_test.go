package main

import (
	"strings"
	"testing"
)

func TestReadProfile(t *testing.T) {
	t.Parallel()
	p, err := readProfile([]byte("mode: set\nddiff/storage/a.go:3.10,5.2 2 1\nddiff/storage/b.go:7.1,7.9 1 0\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file         string
		line, column int
		want         bool
	}{
		{"a.go", 3, 9, false},
		{"a.go", 3, 10, true},
		{"a.go", 4, 1, true},
		{"a.go", 4, 99, true},
		{"a.go", 5, 2, true},
		{"a.go", 5, 3, false},
		{"a.go", 6, 1, false},
		{"b.go", 7, 5, false}, // it did not run
		{"c.go", 4, 1, false},
	} {
		if got := (&source{}).reached(p[c.file], position{c.line, c.column}); got != c.want {
			t.Errorf("%s:%d:%d is reached: %v, want %v", c.file, c.line, c.column, got, c.want)
		}
	}
	for _, bad := range []string{"a.go:1.2,3.4 5", "a:1.2,3.4 5 6", "a.go:1.2,x.4 5 6"} {
		if _, err := readProfile([]byte(bad)); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%q: error %v", bad, err)
		}
	}
}
