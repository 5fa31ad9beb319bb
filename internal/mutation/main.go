// Command mutation measures how many small defects the tests of a package notice.
//
//	go run ./internal/mutation [flags]
//
// The mutations are those of gremlins (https://github.com/go-gremlins/gremlins), which changes one operator of the
// package at a time. Gremlins runs all tests of a package for each mutant; this command runs only the tests that reach
// the mutant, in random order of the mutants, until the time limit of the package. CONTRIBUTING.md describes the counts.
//
// The command ends with one line per package, for scripts, and with code 1 if a package misses the goal.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// packages decide which results are true.
const packages = "manifest dataset storage queue coordinator/shard coordinator coordinator/report restore/operator " +
	"restore/solver restore/noise restore/metric gpuworker"

// The goal of each package: the least share of noticed mutants among the reached ones, and the largest share of
// unreached ones.
const (
	leastNoticed  = 0.92
	mostUnreached = 0.12
)

// config is what the flags set.
type config struct {
	packages []string
	files    *regexp.Regexp
	limit    time.Duration
	seed     uint64
	gremlins string
	equal    string
	list     bool
}

func main() {
	if folder := os.Getenv(collectVariable); folder != "" {
		os.Exit(standIn(folder, os.Args[1:]))
	}
	os.Exit(command(os.Args[1:]))
}

// command measures the packages and returns the exit code.
func command(arguments []string) int {
	c, err := parse(arguments)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	scores, err := run(ctx, c)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		return 1
	}
	code := 0
	for _, s := range scores {
		fmt.Println(s)
		if !s.reachesGoal() && !c.list {
			code = 1
		}
	}
	return code
}

// parse reads the flags.
func parse(arguments []string) (config, error) {
	var c config
	flags := flag.NewFlagSet("mutation", flag.ContinueOnError)
	names := flags.String("packages", packages, "packages, separated by spaces")
	files := flags.String("files", "", "mutate only files whose name matches this regular expression")
	flags.DurationVar(&c.limit, "limit", 20*time.Minute, "time for the mutants of each package")
	flags.Uint64Var(&c.seed, "seed", 1, "seed of the order of the mutants")
	flags.StringVar(&c.gremlins, "gremlins", "gremlins", "program of gremlins")
	flags.StringVar(&c.equal, "equivalent", "internal/mutation/equivalent", "folder with the lists of equivalent mutants")
	flags.BoolVar(&c.list, "list", false, "only list the mutants that no test reaches")
	if err := flags.Parse(arguments); err != nil {
		return c, err
	}
	if flags.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q; see --help", flags.Arg(0))
	}
	c.packages = strings.Fields(*names)
	for i, name := range c.packages {
		c.packages[i] = filepath.ToSlash(filepath.Clean(name))
	}
	var err error
	if c.files, err = regexp.Compile(*files); err != nil {
		return c, fmt.Errorf("--files: %w", err)
	}
	if c.gremlins, err = filepath.Abs(c.gremlins); err != nil {
		return c, err
	}
	return c, nil
}

// run measures the packages one after the other. An interruption ends the measurement; the scores are those of the
// mutants that were tried.
func run(ctx context.Context, c config) ([]score, error) {
	w, err := openWorkspace(ctx)
	if err != nil {
		return nil, err
	}
	defer w.close()
	var scores []score
	for _, name := range c.packages {
		if ctx.Err() != nil {
			break
		}
		s, err := measure(ctx, c, w, name)
		if err != nil {
			return nil, fmt.Errorf("package %s: %w", name, err)
		}
		scores = append(scores, s)
		fmt.Fprintln(os.Stderr, s)
	}
	return scores, nil
}

// measure counts the noticed mutants of a package.
func measure(ctx context.Context, c config, w *workspace, name string) (score, error) {
	s := score{name: name}
	list, err := readEquivalents(c.equal, name)
	if err != nil {
		return s, err
	}
	tests, err := w.mapTests(ctx, name)
	if err != nil {
		return s, err
	}
	mutants, err := w.collect(ctx, c, name, tests)
	if err != nil {
		return s, err
	}
	if mutants, s.equivalent, err = list.remove(mutants, c.files); err != nil {
		return s, err
	}
	var reached []mutant
	for _, m := range mutants {
		if len(m.tests) == 0 {
			s.unreached++
			fmt.Fprintln(os.Stderr, "unreached:", m)
			continue
		}
		reached = append(reached, m)
	}
	s.reached = len(reached)
	if c.list {
		return s, nil
	}
	shuffle(reached, c.seed)
	together := w.together(ctx, name, reached, tests)
	w.rememberCache()
	end := time.Now().Add(c.limit)
	for i, m := range reached {
		if ctx.Err() != nil || time.Now().After(end) {
			break
		}
		o, err := w.tryOnce(ctx, m, tests, together[i])
		w.trimCache()
		if ctx.Err() != nil { // the outcome is that of the interruption
			break
		}
		if err != nil {
			return s, err
		}
		s.add(o)
		if o != noticed {
			fmt.Fprintf(os.Stderr, "%s: %s\n", o, m)
		}
	}
	return s, nil //nolint:nilerr // an interruption ends the measurement without an error
}
