package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ddiff/internal/cli"
	"ddiff/manifest"
)

var update = flag.Bool("update", false, "write the golden files of this package")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; read the difference, then run: go test ./cmd/ddiff -run %s -update\n%s", path, t.Name(), got)
	}
}

// eachCommand calls visit with every visible command.
func eachCommand(cmd *cobra.Command, visit func(*cobra.Command)) {
	cmd.InitDefaultHelpFlag()
	visit(cmd)
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			eachCommand(c, visit)
		}
	}
}

// helpOf returns the help of a command line.
func helpOf(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := execute(t.Context(), args, &stdout, &stderr); code != cli.ExitDone || stderr.Len() > 0 {
		t.Fatalf("%v: exit code %d, stderr %q", args, code, stderr.String())
	}
	return stdout.String()
}

func TestHelp(t *testing.T) {
	golden(t, "help.txt", helpOf(t, "--help"))
}

// The help topics are commands without a verb.
func TestHelpOnExitCodes(t *testing.T) {
	if got, want := helpOf(t, "help", "exit-codes"), reflow(cli.NewExitCodesTopic().Long); !strings.HasPrefix(got, want) {
		t.Errorf("ddiff help exit-codes prints %q, want %q at its start", got, want)
	}
}

// Names, shorthands, types and defaults of flags are an interface of scripts.
func TestFlags(t *testing.T) {
	var b strings.Builder
	eachCommand(newRootCommand(&b, manifest.Catalogue{}), func(cmd *cobra.Command) {
		fmt.Fprintf(&b, "%s\n", cmd.UseLine())
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == "help" {
				return
			}
			short := ""
			if f.Shorthand != "" {
				short = " -" + f.Shorthand
			}
			fmt.Fprintf(&b, "  --%s%s %s %q\n", f.Name, short, f.Value.Type(), f.DefValue)
		})
	})
	golden(t, "flags.txt", b.String())
}

// People speak HTTP: only the processes of a cluster connect to NATS.
func TestFlagsOfNATS(t *testing.T) {
	var with []string
	rows := 0
	eachCommand(newRootCommand(&bytes.Buffer{}, manifest.Catalogue{}), func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if strings.Contains(f.Usage, "NATS") {
				rows++
			}
		})
		if cmd.Flag("nats") != nil {
			with = append(with, cmd.Name())
		}
	})
	if want := []string{"coordinator", "worker"}; !slices.Equal(with, want) || rows > 14+1 { // and --replicas
		t.Errorf("%d flags are about NATS, and %q have --nats", rows, with)
	}
}

func TestFlagsAreUsable(t *testing.T) {
	var out bytes.Buffer
	eachCommand(newRootCommand(&out, manifest.Catalogue{}), func(cmd *cobra.Command) {
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: short description %q", cmd.CommandPath(), cmd.Short)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" && !f.Hidden {
				t.Errorf("%s --%s has no description", cmd.CommandPath(), f.Name)
			}
			if value := strings.Trim(f.DefValue, "[]"); value != "" {
				if err := f.Value.Set(value); err != nil {
					t.Errorf("%s --%s does not accept its default: %v", cmd.CommandPath(), f.Name, err)
				}
			}
		})
	})
}

// The help of a command has its own flags first, and those of logs last.
func TestFlagGroups(t *testing.T) {
	heading := regexp.MustCompile(`(?m)^((?:\S.* )?[Ff]lags):$`)
	for verb, want := range map[string][]string{
		"run":    {"Flags", "Problem and solver flags", "Device flags", "Dataset access flags", "Log and trace flags"},
		"worker": {"Flags", "Device flags", "Dataset access flags", "NATS flags", "Log and trace flags"},
		"status": {"Flags"},
	} {
		var got []string
		for _, m := range heading.FindAllStringSubmatch(helpOf(t, verb, "--help"), -1) {
			got = append(got, m[1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("ddiff %s --help has the groups %q, want %q", verb, got, want)
		}
	}
}

// No line of the help of any command has more than 80 columns.
func TestHelpFits(t *testing.T) {
	var commands [][]string
	eachCommand(newRootCommand(&bytes.Buffer{}, manifest.Catalogue{}), func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Example) { // a wrapped command is none
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("%s: example of %d columns: %s", cmd.CommandPath(), n, line)
			}
		}
		commands = append(commands, append([]string{"help"}, strings.Fields(cmd.CommandPath())[1:]...))
	})
	for _, args := range commands {
		for line := range strings.Lines(helpOf(t, args...)) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("%v: line of %d columns: %s", args, n, line)
			}
		}
	}
}

func TestVersionFlag(t *testing.T) {
	if got, want := helpOf(t, "--version"), "ddiff "+cli.Version()+"\n"; got != want {
		t.Errorf("ddiff --version prints %q, want %q", got, want)
	}
}

// Every visible command has a manual page with its flags.
func TestManualPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	helpOf(t, "man", dir)
	pages := 0
	eachCommand(newRootCommand(&bytes.Buffer{}, manifest.Catalogue{}), func(cmd *cobra.Command) {
		if cmd.Name() == "help" || cmd.IsAdditionalHelpTopicCommand() {
			return
		}
		pages++
		page, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"))
		if err != nil {
			t.Error(err)
			return
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(string(page), f.Name) {
				t.Errorf("the page of %s lacks --%s", cmd.CommandPath(), f.Name)
			}
		})
	})
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != pages {
		t.Errorf("%d pages for %d commands", len(entries), pages)
	}
	first, err := os.ReadFile(filepath.Join(dir, "ddiff-run.1"))
	if err != nil {
		t.Fatal(err)
	}
	helpOf(t, "man", dir)
	if again, err := os.ReadFile(filepath.Join(dir, "ddiff-run.1")); err != nil || !bytes.Equal(first, again) {
		t.Errorf("a second call writes another page (%v)", err)
	}
}
