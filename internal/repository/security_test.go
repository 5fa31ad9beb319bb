package repository

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// SECURITY.md says where to report in private, what to do when that place is closed, which versions get fixes, and what the program protects.
// Its commands run.
func TestSecurityPolicy(t *testing.T) {
	t.Parallel()
	const name = "SECURITY.md"
	page := read(t, name)
	for _, text := range []string{"privately", "**Security > Advisories > Report a vulnerability**", "asks for a private channel", "newest version", "(docs/security/README.md)"} {
		if !strings.Contains(page, text) {
			t.Errorf("%s does not say %q", name, text)
		}
	}
	commands := regexp.MustCompile("`ddiff ([^`]+)`").FindAllStringSubmatch(page, -1)
	if len(commands) == 0 {
		t.Errorf("%s does not say how to find the version", name)
	}
	for _, m := range commands {
		if out, err := exec.CommandContext(t.Context(), ddiff(t), strings.Fields(m[1])...).CombinedOutput(); err != nil {
			t.Errorf("%s: ddiff %s: %v\n%s", name, m[1], err, out)
		}
	}
	if !strings.Contains(read(t, "docs/security/README.md"), "\n## Threat model") {
		t.Errorf("the page that %s links has no threat model", name)
	}
}
