package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The first report is in the form of gotestsum, the second in that of pytest.
const (
	goReport = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="4"><testsuite name="ddiff/storage">
<testcase classname="ddiff/storage" name="TestFull" time="2.5"></testcase>
<testcase classname="ddiff/storage" name="TestRoot"><skipped message="=== RUN   TestRoot&#xA;    a_test.go:7: first&#xA;    a_test.go:9: root has every right&#xA;--- SKIP: TestRoot (0.00s)&#xA;"></skipped></testcase>
<testcase classname="ddiff/storage" name="TestRoot/part"><skipped message="    a_test.go:9: a part&#xA;"></skipped></testcase>
<testcase classname="ddiff/storage" name="TestRooted" time="0.010"><skipped message="    a_test.go:12: another"></skipped></testcase>
</testsuite></testsuites>`
	pythonReport = `<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest"><testcase classname="tests.test_twin" name="test_job[a/b]" time="0.1"><skipped type="pytest.skip" message="no
 model">x.py:25: no model</skipped></testcase></testsuite></testsuites>`
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRun(t *testing.T) {
	t.Parallel()
	list := write(t, "may-skip", "# comment\n\nddiff/storage.TestRoot  root is not bound\n")
	var out strings.Builder
	unlisted, err := run(&out, list, 2, []string{write(t, "go.xml", goReport), write(t, "python.xml", pythonReport)})
	if err != nil {
		t.Fatal(err)
	}
	const want = `     2.5 s  ddiff/storage.TestFull
     0.1 s  tests.test_twin.test_job[a/b]
  may skip  ddiff/storage.TestRoot: root has every right
  may skip  ddiff/storage.TestRoot/part: a part
  MUST RUN  ddiff/storage.TestRooted: another
  MUST RUN  tests.test_twin.test_job[a/b]: no model
1 tests ran, 4 tests skipped, 2 of them not in the list of tests that may
`
	if out.String() != want || unlisted != 2 {
		t.Errorf("%d unlisted\n%s\nwant 2\n%s", unlisted, out.String(), want)
	}
}
