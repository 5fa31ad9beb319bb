package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ddiff/internal/dataset"
	"ddiff/internal/queue"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/manifest"
	"ddiff/storage"
)

// The exit codes are an interface of scripts.
func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("something"), 1},
		{Usage(errors.New("flag")), 2},
		{&manifest.FieldError{Field: "steps", Err: errors.New("out of range")}, 2},
		{manifest.ErrEmptyDataset, 2},
		{dataset.ErrBadArchive, 2},
		{dataset.ErrRefused, 2},
		{storage.ErrAddress, 2},
		{errors.New(`unknown command "x" for "ddiff"`), 2},
		{ErrIncomplete, 3},
		{ErrMismatch, 3},
		{onnxruntime.ErrProvider, 4},
		{storage.ErrLocked, 5},
		{storage.ErrNoSpace, 6},
		{ErrPrior, 7},
		{queue.ErrConfig, 2},
		{queue.ErrUnreachable, 9},
		{context.Canceled, 130},
		{errors.Join(ErrIncomplete, storage.ErrNoSpace), 6},
		{errors.Join(storage.ErrNoSpace, context.Canceled), 130},
		{errors.Join(ErrMismatch, Usage(errors.New("flag"))), 2},
	} {
		err := c.err
		if err != nil {
			err = fmt.Errorf("some action: %w", err)
			if strings.HasPrefix(c.err.Error(), "unknown command") {
				err = c.err
			}
		}
		if got := ExitCode(err); got != c.want {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.want)
		}
	}
}

// The table, the help topic and the documentation agree on codes and meanings.
func TestExitCodesAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "scripting.md"))
	if err != nil {
		t.Fatal(err)
	}
	topic := NewExitCodesTopic().Long
	classes := exitClasses()
	for _, c := range classes {
		line := regexp.MustCompile(fmt.Sprintf(`(?m)^  %d +%s$`, c.code, regexp.QuoteMeta(c.meaning)))
		if !line.MatchString(topic) {
			t.Errorf("ddiff help exit-codes lacks %d, %s", c.code, c.meaning)
		}
		row := regexp.MustCompile(fmt.Sprintf(`(?m)^\| %d +\| %s \|$`, c.code, regexp.QuoteMeta(c.meaning)))
		if !row.Match(page) {
			t.Errorf("docs/scripting.md lacks %d, %s", c.code, c.meaning)
		}
	}
	rows := regexp.MustCompile(`(?m)^\| (\d+) +\|`).FindAllStringSubmatch(string(page), -1)
	if len(rows) != len(classes) {
		t.Errorf("docs/scripting.md has %d exit codes, the program %d", len(rows), len(classes))
	}
	seen := map[string]bool{}
	for _, m := range rows {
		if _, err := strconv.Atoi(m[1]); err != nil || seen[m[1]] {
			t.Errorf("docs/scripting.md repeats %s", m[1])
		}
		seen[m[1]] = true
	}
}
