package cli

import (
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ddiff/manifest"
	"ddiff/restore/item"
)

// a result in a final state.
func ending(outcome item.Outcome, attempt int) item.Result {
	return item.Result{Outcome: outcome, Attempt: attempt, Reason: "the reason", Item: item.Item{Name: "cat", Task: "hdr"}}
}

// While the dataset is being read, the status line shows the number of rows.
func TestStatusLineWhileReading(t *testing.T) {
	var out strings.Builder
	p := NewProgress(false, false, &out, &out)
	p.Entered(20, 400, false)
	p.Finished(ending(item.OutcomeDone, 1), true)
	p.Finished(ending(item.OutcomeDone, 1), false)
	if got, want := p.line(), "reading the dataset: 20 items  1 of 20 found  1 restored"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.Skipped(manifest.Skip{Path: "notes.md", Reason: manifest.SkipKind})
	p.Finished(ending(item.OutcomeFailed, 0), false)
	p.Entered(30, 600, true)
	want := "failed: cat (hdr): the reason\nskipped 1: not an image: notes.md\n30 items, 1 of them are done, 28 to do\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// On a terminal one line is written again and again; a failure gets a line of its own.
func TestStatusLineOnTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := NewProgress(false, false, &out, &out)
		p.terminal = true
		p.status = func(line string) { out.WriteString("\r\x1b[K" + line) }
		p.Begin()
		p.Entered(3, 30, true)
		p.Stepped(10)
		time.Sleep(statusEvery + time.Millisecond)
		p.Finished(ending(item.OutcomeDead, 3), false)
		p.Stop()
		p.Stop()
		text := out.String()
		for _, want := range []string{"\r\x1b[K", "dead: cat (hdr): the reason\n", "1/3 images", "\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing in %q", want, text)
			}
		}
		if strings.Count(text, "\n") != 3 { // the counts, the failure, the end of the status line
			t.Errorf("%d lines in %q", strings.Count(text, "\n"), text)
		}
	})
}

// The time left is that of the steps so far, in parts, and falls until the next one.
func TestTimeLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewProgress(false, false, io.Discard, io.Discard)
		p.Entered(1, 2, true)
		time.Sleep(time.Minute) // compiles
		lines := []string{p.line()}
		p.Advanced(0.25)
		lines = append(lines, p.line())
		for range 2 {
			time.Sleep(10 * time.Second)
			p.Advanced(0.25)
			lines = append(lines, p.line())
		}
		time.Sleep(3 * time.Second)
		lines = append(lines, p.line())
		time.Sleep(time.Hour)
		lines = append(lines, p.line())
		want := []string{
			"0/1 images", "0/1 images  step 0 of 2", "0/1 images  step 0 of 2  ETA 1m0s", "0/1 images  step 0 of 2  ETA 50s",
			"0/1 images  step 0 of 2  ETA 47s", "0/1 images  step 0 of 2  ETA 0s",
		}
		if !slices.Equal(lines, want) {
			t.Errorf("%q, want %q", lines, want)
		}
	})
}

// Steps that are made again never exceed all steps.
func TestStepsMadeAgain(t *testing.T) {
	p := NewProgress(false, false, io.Discard, io.Discard)
	p.Entered(2, 10, true)
	p.Advanced(12.5)
	if got, want := p.line(), "0/2 images  step 12 of 13"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The time left that was foreseen falls until steps show another one.
func TestTimeForeseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewProgress(false, false, io.Discard, io.Discard)
		p.Entered(1, 2, true)
		p.Expect(time.Minute)
		var lines []string
		for range 3 {
			lines = append(lines, p.line())
			time.Sleep(20 * time.Second)
			p.Advanced(0.5)
		}
		want := []string{"0/1 images  ETA 1m0s", "0/1 images  step 0 of 2  ETA 40s", "0/1 images  step 1 of 2  ETA 40s"}
		if !slices.Equal(lines, want) {
			t.Errorf("%q, want %q", lines, want)
		}
	})
}

// Quiet and JSON runs show failures alone.
func TestQuietProgress(t *testing.T) {
	var out, errs strings.Builder
	p := NewProgress(false, true, &out, &errs)
	p.Begin()
	p.Entered(1, 10, true)
	p.Finished(ending(item.OutcomeFailed, 1), false)
	p.Stop()
	if out.String() != "" || errs.String() != "failed: cat (hdr): the reason\n" {
		t.Errorf("stdout %q, stderr %q", out.String(), errs.String())
	}
}
