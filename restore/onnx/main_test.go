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

// With DDIFF_GRADIENTS, TestMain fails if no test used a rule of reverse mode, and prints the number of rules and graphs and the
// largest relative error.
func TestMain(m *testing.M) {
	flag.Parse()
	summary := os.Getenv("DDIFF_GRADIENTS") != ""
	var used sync.Map
	rules := onnx.WatchRules(func(op string) { used.Store(op, true) })
	code := m.Run()
	if code == 0 && summary {
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
