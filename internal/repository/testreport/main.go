// Command testreport prints the slowest tests, and the skipped ones with their reasons, from JUnit reports: those of gotestsum for Go and
// of pytest for Python.
//
//	testreport [-enforce] -may-skip FILE REPORT.xml...
//
// FILE lists the tests that may skip, one per line, each followed by a blank and the reason; an
// entry covers the subtests. With -enforce any other skip ends in exit code 1.
package main

import (
	"cmp"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

func main() {
	enforce := flag.Bool("enforce", false, "fail if a test that is not in the list was skipped")
	list := flag.String("may-skip", "", "file that lists the tests that may skip")
	flag.Parse()
	unlisted, err := run(os.Stdout, *list, 10, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	if *enforce && unlisted > 0 {
		fmt.Fprintf(os.Stderr, "testreport: %d tests were skipped that are not in %s; make them run, or list each with a reason\n", unlisted, *list)
		os.Exit(1)
	}
}

// testcase is one test of a JUnit report.
type testcase struct {
	Class   string  `xml:"classname,attr"`
	Name    string  `xml:"name,attr"`
	Time    float64 `xml:"time,attr"`
	Skipped *struct {
		Message string `xml:"message,attr"`
	} `xml:"skipped"`
}

// logLine matches a line that a Go test logged, with its position.
var logLine = regexp.MustCompile(`(?m)^\s+[\w.-]+\.go:\d+: (.*)$`)

// reason returns the last line that a Go test logged before it was skipped, or the message of pytest.
func (t testcase) reason() string {
	if lines := logLine.FindAllStringSubmatch(t.Skipped.Message, -1); len(lines) > 0 {
		return strings.TrimSpace(lines[len(lines)-1][1])
	}
	return strings.Join(strings.Fields(t.Skipped.Message), " ")
}

// run prints the slowest and the skipped tests of the reports. It returns the number of skipped tests that are not in the list.
func run(out io.Writer, list string, slowest int, reports []string) (unlisted int, err error) {
	allowed, err := readList(list)
	if err != nil {
		return 0, err
	}
	var tests []testcase
	for _, name := range reports {
		var report struct {
			Cases []testcase `xml:"testsuite>testcase"`
		}
		data, err := os.ReadFile(name)
		if err == nil {
			err = xml.Unmarshal(data, &report)
		}
		if err != nil {
			return 0, fmt.Errorf("read report %s: %w", name, err)
		}
		tests = append(tests, report.Cases...)
	}
	// The time of a parent includes its subtests, so that only tests without subtests count.
	parents := map[string]bool{}
	for _, t := range tests {
		if i := strings.LastIndexByte(t.Name, '/'); i >= 0 {
			parents[t.Class+"."+t.Name[:i]] = true
		}
	}
	leaves := slices.DeleteFunc(slices.Clone(tests), func(t testcase) bool { return parents[t.Class+"."+t.Name] })
	slices.SortStableFunc(leaves, func(a, b testcase) int { return cmp.Compare(b.Time, a.Time) })
	for _, t := range leaves[:min(slowest, len(leaves))] {
		fmt.Fprintf(out, "  %6.1f s  %s.%s\n", t.Time, t.Class, t.Name)
	}
	skipped := 0
	for _, t := range tests {
		if t.Skipped == nil {
			continue
		}
		skipped++
		mark := "may skip"
		name := t.Class + "." + t.Name
		if !slices.ContainsFunc(allowed, func(entry string) bool { return name == entry || strings.HasPrefix(name, entry+"/") }) {
			mark = "MUST RUN"
			unlisted++
		}
		fmt.Fprintf(out, "  %s  %s: %s\n", mark, name, t.reason())
	}
	fmt.Fprintf(out, "%d tests ran, %d tests skipped, %d of them not in the list of tests that may\n", len(tests)-skipped, skipped, unlisted)
	return unlisted, nil
}

// readList reads the list of tests that may skip. An entry without a reason is an error.
func readList(name string) (tests []string, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read list of tests that may skip: %w", err)
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		test, why, _ := strings.Cut(line, " ")
		if strings.TrimSpace(why) == "" {
			return nil, fmt.Errorf("%s:%d: %s has no reason; add one after a blank", name, number, test)
		}
		tests = append(tests, test)
	}
	return tests, nil
}
