package onnx_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"ddiff/restore/onnx"
)

// TestMain fails if all tests ran and none used some rule of reverse mode. With DDIFF_GRADIENTS it fails also if some tests ran,
// and prints the number of rules and graphs and the largest relative error.
func TestMain(m *testing.M) {
	flag.Parse()
	summary := os.Getenv("DDIFF_GRADIENTS") != ""
	var used sync.Map
	rules := onnx.WatchRules(func(op string) { used.Store(op, true) })
	code := m.Run()
	if code == 0 && (summary || flag.Lookup("test.run").Value.String() == "" && !testing.Short()) {
		slices.Sort(rules)
		for _, op := range rules {
			if _, ok := used.Load(op); !ok {
				fmt.Printf("no test uses the gradient rule of %s\n", op)
				code = 1
			}
		}
	}
	if summary {
		fmt.Printf("rules=%d graphs=%d max_rel=%.1e\n", len(rules), gradients.graphs, gradients.max)
	}
	os.Exit(code)
}
