package repository

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// makeTargets returns the targets of the Makefile that `make help` shows.
func makeTargets(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):.*## `).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		out = append(out, m[1])
	}
	if len(out) == 0 {
		t.Fatal("the Makefile has no target with a comment of two hashes")
	}
	return out
}

// commands returns the command lines in the shell blocks of a Markdown file, with continued lines
// joined and comments removed.
func commands(text string) []string {
	var out []string
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?\n)```").FindAllStringSubmatch(text, -1) {
		joined := strings.ReplaceAll(block[1], "\\\n", " ")
		for line := range strings.SplitSeq(joined, "\n") {
			line, _, _ = strings.Cut(line, " #")
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				out = append(out, line)
			}
		}
	}
	return out
}

// Every command in the documents exists, with its flags.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	targets := makeTargets(t)
	for _, document := range tracked(t, "README.md", "CONTRIBUTING.md", "docs/*.md") {
		for _, line := range commands(read(t, document)) {
			words := strings.Fields(line)
			switch filepath.Base(words[0]) {
			case "make":
				for _, w := range words[1:] {
					if !strings.Contains(w, "=") && !slices.Contains(targets, w) {
						t.Errorf("%s: %q: the Makefile has no target %s", document, line, w)
					}
				}
			case "ddiff":
				checkVerb(t, document, line, words[1:])
			}
		}
	}
}

// usageLine matches the line of a help text with the verb and its arguments.
var usageLine = regexp.MustCompile(`(?m)^  ddiff((?: [a-z]+)*)(.*)$`)

// checkVerb compares a command line with the help of its verb.
func checkVerb(t *testing.T, document, line string, words []string) {
	t.Helper()
	var plain, flags []string
	for _, w := range words {
		if name, _, _ := strings.Cut(w, "="); strings.HasPrefix(w, "-") {
			flags = append(flags, name)
		} else if len(flags) == 0 {
			plain = append(plain, w)
		}
	}
	help, err := exec.CommandContext(t.Context(), ddiff(t), append(plain, "--help")...).CombinedOutput()
	usage := usageLine.FindStringSubmatch(string(help))
	if err != nil || usage == nil {
		t.Errorf("%s: %q: no help (%v)\n%s", document, line, err, help)
		return
	}
	// Further words are arguments, unless the verb is a group of verbs.
	if n := len(strings.Fields(usage[1])); n < len(plain) && strings.Contains(usage[2], "[command]") {
		t.Errorf("%s: %q: there is no verb %s", document, line, plain[n])
	}
	for _, f := range flags {
		if !regexp.MustCompile(`(?m)^ .*` + regexp.QuoteMeta(f) + `\b`).Match(help) {
			t.Errorf("%s: %q: ddiff%s has no flag %s", document, line, usage[1], f)
		}
	}
}

// docs/scripting.md lists every verb and every exit code of the program.
func TestScriptingPageIsComplete(t *testing.T) {
	t.Parallel()
	const name = "docs/scripting.md"
	page := read(t, name)
	help, err := exec.CommandContext(t.Context(), ddiff(t), "--help").Output()
	must(t, err)
	verbs := regexp.MustCompile(`(?m)^  ([a-z]+)  +[A-Z]`).FindAllStringSubmatch(string(help), -1)
	if len(verbs) < 10 {
		t.Fatalf("the help lists %d commands:\n%s", len(verbs), help)
	}
	for _, m := range verbs {
		if verb := m[1]; verb != "help" && !strings.Contains(page, "`ddiff "+verb+"`") {
			t.Errorf("%s does not list `ddiff %s`", name, verb)
		}
	}
	codes, err := exec.CommandContext(t.Context(), ddiff(t), "help", "exit-codes").Output()
	must(t, err)
	for _, m := range regexp.MustCompile(`(?m)^  (\d+)  +\S`).FindAllStringSubmatch(string(codes), -1) {
		if !regexp.MustCompile(`(?m)^\| ` + m[1] + ` +\|`).MatchString(page) {
			t.Errorf("%s does not list the exit code %s", name, m[1])
		}
	}
}

// The targets of links between documents exist, with their anchors.
func TestLinks(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	documents := tracked(t, "*.md")
	for _, document := range documents {
		for _, m := range link.FindAllStringSubmatch(read(t, document), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target := document
			if m[1] != "" {
				target = path.Join(path.Dir(document), m[1])
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(target))); err != nil {
				t.Errorf("%s: the link to %s has no target", document, m[1])
			} else if anchor, ok := strings.CutPrefix(m[2], "#"); ok && slices.Contains(documents, target) && !anchors(read(t, target))[anchor] {
				t.Errorf("%s: %s has no heading #%s", document, target, anchor)
			}
		}
	}
}

// anchors returns the anchors of the headings of a document.
func anchors(text string) map[string]bool {
	found, fence := map[string]bool{}, false
	dropped := regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			fence = !fence
		}
		if heading := strings.TrimLeft(line, "#"); heading != line && !fence {
			name := dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
			found[strings.ReplaceAll(name, " ", "-")] = true
		}
	}
	return found
}

// The README is for visitors: everything else belongs to docs/, and the README links every page, except those of docs/methods, which
// docs/methods.md links (TestMethodsTable).
func TestReadmeIsShort(t *testing.T) {
	t.Parallel()
	readme := read(t, "README.md")
	if n := len(strings.Fields(readme)); n > 900 {
		t.Errorf("README.md has %d words, at most 900 are allowed; move details to docs/", n)
	}
	for _, page := range tracked(t, "docs/*.md") {
		if !strings.HasPrefix(page, "docs/methods/") && !strings.Contains(readme, "("+page+")") {
			t.Errorf("README.md does not link %s", page)
		}
	}
}

// TestTablesAreWhole: a table of a document begins with a heading and its rule; a blank line within a table would end it there.
func TestTablesAreWhole(t *testing.T) {
	t.Parallel()
	for _, name := range tracked(t, "*.md") {
		lines := strings.Split(read(t, name), "\n")
		for i, line := range lines {
			begins := strings.HasPrefix(line, "|") && (i == 0 || !strings.HasPrefix(lines[i-1], "|"))
			if begins && !strings.HasPrefix(lines[i+1], "|-") && !strings.HasPrefix(lines[i+1], "| :-") && !strings.HasPrefix(lines[i+1], "| -") {
				t.Errorf("%s:%d: a row of a table without a heading", name, i+1)
			}
		}
	}
}
