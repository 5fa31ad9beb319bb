package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNotifyKey: the flags of notifications are refused, with the remedy, before a server is asked.
func TestNotifyKey(t *testing.T) {
	t.Parallel()
	file := func(content string) string {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		flags notifyFlags
		want  string
	}{
		{notifyFlags{}, ""},
		{notifyFlags{hosts: []string{"a.example"}}, "give --notify-secret FILE"},
		{notifyFlags{secret: "key"}, "give --notify-host too"},
		{notifyFlags{hosts: []string{"a.example"}, secret: file("short\n")}, "has 5 bytes, at least 24"},
		{notifyFlags{hosts: []string{"a.example"}, secret: file(strings.Repeat("x", 24))}, ""},
	} {
		key, err := c.flags.key()
		if c.want == "" && (err != nil || (key == nil) != (c.flags.hosts == nil)) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %q, %v", c.flags, key, err)
		}
	}
}
