// Command testreport prints the skipped tests, with their reasons, and the slowest tests from
// JUnit reports: those of gotestsum for Go and of pytest for Python.
//
//	testreport [-enforce] [-slowest N] -may-skip FILE REPORT.xml...
//
// FILE lists the tests that may skip, one per line, each followed by a blank and the reason; an
// entry covers the subtests. With -enforce any other skip ends in exit code 1.
package main

import (
	"bufio"
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
	slowest := flag.Int("slowest", 10, "how many of the slowest tests to print")
	list := flag.String("may-skip", "", "file that lists the tests that may skip")
	flag.Parse()
	unlisted, err := run(os.Stdout, *list, *slowest, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	if *enforce && unlisted > 0 {
		fmt.Fprintf(os.Stderr, "testreport: %d tests were skipped that are not in %s; make them run, or list each with a reason\n", unlisted, *list)
		os.Exit(1)
	}
}

// run prints the slowest and the skipped tests of the reports. It returns the number of skipped
// tests that are not in the list.
func run(out io.Writer, list string, slowest int, reports []string) (unlisted int, err error) {
	allowed, err := readList(list)
	if err != nil {
		return 0, err
	}
	var tests []test
	for _, name := range reports {
		found, err := readReport(name)
		if err != nil {
			return 0, err
		}
		tests = append(tests, found...)
	}
	printSlowest(out, tests, slowest)
	skipped := 0
	for _, t := range tests {
		if !t.skipped {
			continue
		}
		mark := "may skip"
		if !allowed.has(t.name) {
			mark = "MUST RUN"
			unlisted++
		}
		skipped++
		fmt.Fprintf(out, "  %s  %s: %s\n", mark, t.name, t.reason)
	}
	fmt.Fprintf(out, "%d tests ran, %d tests skipped, %d of them not in the list of tests that may\n", len(tests)-skipped, skipped, unlisted)
	return unlisted, nil
}

// printSlowest prints the n slowest tests. The time of a parent includes its subtests, so that
// only tests without subtests count.
func printSlowest(out io.Writer, tests []test, n int) {
	parents := map[string]bool{}
	for _, t := range tests {
		if i := strings.LastIndexByte(t.name, '/'); i >= 0 {
			parents[t.name[:i]] = true
		}
	}
	var leaves []test
	for _, t := range tests {
		if !parents[t.name] {
			leaves = append(leaves, t)
		}
	}
	slices.SortStableFunc(leaves, func(a, b test) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, t := range leaves[:min(n, len(leaves))] {
		fmt.Fprintf(out, "  %6.1f s  %s\n", t.seconds, t.name)
	}
}

// test is one test of a report; name is "package.Test/subtest" or "module.test".
type test struct {
	name    string
	seconds float64
	skipped bool
	reason  string // of the skip
}

// readReport reads the tests of a JUnit report.
func readReport(name string) ([]test, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	var report struct {
		Suites []struct {
			Cases []struct {
				Class   string  `xml:"classname,attr"`
				Name    string  `xml:"name,attr"`
				Time    float64 `xml:"time,attr"`
				Skipped *struct {
					Message string `xml:"message,attr"`
				} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(data, &report); err != nil {
		return nil, fmt.Errorf("read report %s: %w", name, err)
	}
	var out []test
	for _, suite := range report.Suites {
		for _, c := range suite.Cases {
			t := test{name: c.Class + "." + c.Name, seconds: c.Time}
			if c.Skipped != nil {
				t.skipped, t.reason = true, reason(c.Skipped.Message)
			}
			out = append(out, t)
		}
	}
	return out, nil
}

// logLine matches a line that a Go test logged, with its position.
var logLine = regexp.MustCompile(`(?m)^\s+[\w.-]+\.go:\d+: (.*)$`)

// reason returns the last line that a Go test logged, or the message of pytest.
func reason(message string) string {
	if lines := logLine.FindAllStringSubmatch(message, -1); len(lines) > 0 {
		return strings.TrimSpace(lines[len(lines)-1][1])
	}
	return strings.Join(strings.Fields(message), " ")
}

// mayskip is the list of tests that may skip.
type mayskip map[string]bool

// has reports whether a test, or a test that contains it, is in the list.
func (m mayskip) has(test string) bool {
	for {
		if m[test] {
			return true
		}
		end := strings.LastIndexByte(test, '/')
		// A slash before the first dot belongs to the package path.
		if end < 0 || !strings.Contains(test[:end], ".") {
			return false
		}
		test = test[:end]
	}
}

// readList reads the list. An entry without a reason is an error.
func readList(name string) (mayskip, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read list of tests that may skip: %w", err)
	}
	defer file.Close() // opened for reading
	out := mayskip{}
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		test, why, _ := strings.Cut(line, " ")
		if strings.TrimSpace(why) == "" {
			return nil, fmt.Errorf("%s:%d: %s has no reason; add one after a blank", name, number, test)
		}
		out[test] = true
	}
	return out, lines.Err()
}
