// Command skips lists the tests that were skipped, with their reasons, from JUnit reports:
// those of gotestsum for Go and of pytest for Python.
//
//	skips [-enforce] -may-skip FILE REPORT.xml...
//
// FILE lists the tests that may skip, one on a line, with the reason behind a blank; an entry
// covers the subtests. With -enforce any other skip ends in exit code 1.
package main

import (
	"bufio"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

func main() {
	enforce := flag.Bool("enforce", false, "fail when a test was skipped that is not in the list")
	list := flag.String("may-skip", "", "file that lists the tests that may skip")
	flag.Parse()
	unlisted, err := run(os.Stdout, *list, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "skips:", err)
		os.Exit(2)
	}
	if *enforce && unlisted > 0 {
		fmt.Fprintf(os.Stderr, "skips: %d tests were skipped that must not be; make them run, or list them with a reason in %s\n", unlisted, *list)
		os.Exit(1)
	}
}

// run prints the skipped tests of the reports and counts those that are not in the list.
func run(out io.Writer, list string, reports []string) (unlisted int, err error) {
	allowed, err := readList(list)
	if err != nil {
		return 0, err
	}
	total := 0
	for _, name := range reports {
		skipped, err := readReport(name)
		if err != nil {
			return 0, err
		}
		for _, s := range skipped {
			mark := "may skip"
			if !allowed.has(s.test) {
				mark = "MUST RUN"
				unlisted++
			}
			total++
			fmt.Fprintf(out, "  %s  %s: %s\n", mark, s.test, s.reason)
		}
	}
	fmt.Fprintf(out, "%d tests skipped, %d of them not in the list of those that may\n", total, unlisted)
	return unlisted, nil
}

// skip is one test that was skipped; test is "package.Test/subtest" or "module.test".
type skip struct{ test, reason string }

// readReport finds the skipped tests of a JUnit report.
func readReport(name string) ([]skip, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	var report struct {
		Suites []struct {
			Cases []struct {
				Class   string `xml:"classname,attr"`
				Name    string `xml:"name,attr"`
				Skipped *struct {
					Message string `xml:"message,attr"`
				} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(data, &report); err != nil {
		return nil, fmt.Errorf("read report %s: %w", name, err)
	}
	var out []skip
	for _, suite := range report.Suites {
		for _, c := range suite.Cases {
			if c.Skipped != nil {
				out = append(out, skip{c.Class + "." + c.Name, reason(c.Skipped.Message)})
			}
		}
	}
	return out, nil
}

// logLine is a line that a Go test logged, with its place.
var logLine = regexp.MustCompile(`(?m)^\s+[\w.-]+\.go:\d+: (.*)$`)

// reason is the last line that a Go test logged, or what pytest gives as the message.
func reason(message string) string {
	if lines := logLine.FindAllStringSubmatch(message, -1); len(lines) > 0 {
		return strings.TrimSpace(lines[len(lines)-1][1])
	}
	return strings.Join(strings.Fields(message), " ")
}

// mayskip is the list of tests that may skip.
type mayskip map[string]bool

// has tells whether a test, or the one that it is a part of, is in the list.
func (m mayskip) has(test string) bool {
	for {
		if m[test] {
			return true
		}
		end := strings.LastIndexByte(test, '/')
		// The slashes of a package path are no subtests.
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
	defer file.Close() // nothing was written
	out := mayskip{}
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		test, why, _ := strings.Cut(line, " ")
		if strings.TrimSpace(why) == "" {
			return nil, fmt.Errorf("%s:%d: %s has no reason; write one behind a blank", name, number, test)
		}
		out[test] = true
	}
	return out, lines.Err()
}
